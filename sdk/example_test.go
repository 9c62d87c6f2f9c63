package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

func ExampleRegistry() {
	run := func(ctx context.Context, out sdk.Publisher) error {
		s := &sdk.Service{Host: "hello.example.com", Namespace: "default"}
		if err := out.Update(state.Services, []*sdk.Row{sdk.ServiceRow(s)}, nil); err != nil {
			return err
		}
		return out.Synced()
	}
	_ = sdk.RegistryPlugin{
		Name: "hello", Version: "1", Publishes: []string{state.Services},
		New: sdk.WithoutConfig(func() (sdk.Registry, error) { return sdk.RegistryFunc(run), nil }),
	}
}

// A config is read into a struct: what is wrong with one is said with the field.
func ExampleWithConfig() {
	type config struct {
		Table string        `json:"table" required:"true" doc:"The table that is published."`
		Every time.Duration `json:"every" min:"1s" doc:"How often the source is read."`
	}
	p := sdk.ConfigSourcePlugin{
		Name: "tables", Version: "1",
		New: sdk.WithConfig(config{Every: time.Minute}, func(c config) (sdk.ConfigSource, error) {
			return sdk.ConfigSourceFunc(func(ctx context.Context, out sdk.Publisher) error { return out.Synced() }), nil
		}),
	}
	fmt.Println(sdk.Check(p, []byte(`{"tabel": "a"}`)))
	fmt.Println(sdk.Check(p, []byte(`{"every": "1m"}`)))
	fmt.Println(sdk.Check(p, []byte(`{"table": "a", "every": "1ms"}`)))
	fmt.Println(sdk.Check(p, []byte(`{"table": "a", "every": "1m"}`)))
	// Output:
	// tabel: unknown; did you mean "table"?
	// table: is missing: The table that is published.
	// every: 1ms is less than 1s, which is the least
	// <nil>
}

// A deriver that makes a workload of each namespace.
func ExampleDeriver() {
	derive := func(_ context.Context, change *state.Change, out sdk.Publisher) error {
		for _, name := range change.Keys[state.Namespaces] {
			w := sdk.WorkloadRow(&sdk.Workload{Namespace: name, Name: "default"})
			if change.State.Row(state.Namespaces, name) == nil {
				if err := out.Update(state.Workloads, nil, []string{w.Key}); err != nil {
					return err
				}
			} else if err := out.Update(state.Workloads, []*sdk.Row{w}, nil); err != nil {
				return err
			}
		}
		return nil
	}
	_ = sdk.DeriverPlugin{
		Name: "defaults", Reads: []string{state.Namespaces}, Publishes: []string{state.Workloads},
		New: sdk.WithoutConfig(func() (sdk.Deriver, error) { return sdk.DeriverFunc(derive), nil }),
	}
}

// A generator of a resource for each service, the same for all proxies.
func ExampleGenerator() {
	const typeURL = "type.googleapis.com/example.Service"
	g := sdk.GeneratorFuncs{
		PlaceFunc: func(*state.State, *sdk.Proxy) (map[string]string, error) {
			return map[string]string{typeURL: "all"}, nil
		},
		GenerateFunc: func(s *state.State, _, _ string, _ []string) ([]sdk.Resource, error) {
			var all []sdk.Resource
			for key, row := range s.Table(state.Services).All() {
				all = append(all, sdk.Resource{Name: key, Body: row.Payload})
			}
			return all, nil
		},
	}
	_ = sdk.GeneratorPlugin{
		Name: "services", Reads: []string{state.Services}, Types: []sdk.Type{{Url: typeURL}},
		New: sdk.WithoutConfig(func() (sdk.Generator, error) { return g, nil }),
	}
}

// A patch that removes resources whose name begins with a dot.
func ExamplePatch() {
	hide := sdk.PatchFunc(func(_ *state.State, _ string, _ map[string]string, given []sdk.Resource) ([]sdk.Resource, []string, error) {
		var removed []string
		for _, r := range given {
			if strings.HasPrefix(r.Name, ".") {
				removed = append(removed, r.Name)
			}
		}
		return nil, removed, nil
	})
	_, removed, _ := hide.Patch(nil, "", nil, []sdk.Resource{{Name: ".a"}, {Name: "b"}})
	fmt.Println(removed)
	// Output: [.a]
}

// An authenticator that knows one token. A real one compares in constant time.
func ExampleAuthenticator() {
	a := sdk.AuthenticatorFunc(func(_ context.Context, c sdk.Credentials) ([]string, error) {
		if c.Headers["authorization"] != "Bearer open sesame" {
			return nil, errors.New("no token that opens")
		}
		return []string{"spiffe://cluster.local/ns/cave/sa/ali"}, nil
	})
	_, err := a.Authenticate(context.Background(), sdk.Credentials{})
	fmt.Println(err)
	// Output: no token that opens
}

// A controller waits for a table to change.
func ExampleController() {
	_ = sdk.ControllerFunc(func(ctx context.Context, out sdk.Publisher) error {
		for {
			s, newer := out.State()
			out.Log(sdk.Info, "services", "count", s.Table(state.Services).Len())
			select {
			case <-newer:
			case <-ctx.Done():
				return nil
			}
		}
	})
}

func ExampleEndpointRows() {
	e := &sdk.Endpoint{Namespace: "default", Host: "a.b", PortName: "http", Address: "::1", Port: 80}
	for _, row := range sdk.EndpointRows(e, e) {
		fmt.Println(row.Key)
	}
	// Output:
	// default/a.b/http/[::1]:80
	// default/a.b/http/[::1]:80#1
}

// A registry that reads its source again and again, and publishes what differs.
func ExampleList() {
	read := func() ([]*sdk.Service, []*sdk.Endpoint) { return nil, nil }
	_ = sdk.RegistryFunc(func(ctx context.Context, out sdk.Publisher) error {
		list := sdk.NewList(out)
		for ctx.Err() == nil {
			if err := list.Set(read()); err != nil {
				return err
			}
			_ = sdk.Sleep(ctx, time.Second)
		}
		return nil
	})
}

// A config source of one resource: a row's payload is its spec, encoded.
func ExampleConfigSource() {
	run := func(ctx context.Context, out sdk.Publisher) error {
		row := &sdk.Row{Key: "default/everything", Source: "here", Payload: []byte(`{"greeting":"hello"}`)}
		if err := out.Update("example.com/Greeting", []*sdk.Row{row}, nil); err != nil {
			return err
		}
		return out.Synced()
	}
	_ = sdk.ConfigSourcePlugin{
		Name: "greetings", Publishes: []string{"example.com/Greeting"},
		New: sdk.WithoutConfig(func() (sdk.ConfigSource, error) { return sdk.ConfigSourceFunc(run), nil }),
	}
}

// mirror is an engine with one view, in which each service is a resource: it reports the rows that
// changed and nothing else.
type mirror struct{ state *state.State }

const mirrored = "type.googleapis.com/example.Service"

func (m *mirror) Commit(_ context.Context, change *state.Change, out sdk.Output) error {
	m.state = change.State
	return m.report(change.Keys[state.Services], out)
}

func (m *mirror) Overtake(context.Context, *state.Change, sdk.Output) error { return nil }

func (m *mirror) Attach(_ context.Context, p *sdk.Proxy, out sdk.Output) error {
	out.View(mirrored, 1, "all", nil)
	out.Place(p.Connection, mirrored, 1)
	return nil
}

func (m *mirror) Detach(uint64) {}

func (m *mirror) Want(_ context.Context, _ string, _ uint64, names []string, out sdk.Output) error {
	if names == nil {
		names = m.state.Table(state.Services).Keys()
	}
	return m.report(names, out)
}

func (m *mirror) Drop(string, uint64, []string, bool) {}

func (m *mirror) report(keys []string, out sdk.Output) error {
	for _, key := range keys {
		if row := m.state.Row(state.Services, key); row != nil {
			out.Change(mirrored, 1, nil, []sdk.Resource{{Name: key, Body: row.Payload}}, nil)
		} else {
			out.Change(mirrored, 1, nil, []sdk.Resource{{Name: key}}, nil)
		}
	}
	return nil
}

func ExampleEngine() {
	_ = sdk.EnginePlugin{
		Name: "mirror", Reads: []string{state.Services}, Types: []sdk.Type{{Url: mirrored}},
		New: sdk.WithoutConfig(func() (sdk.Engine, error) { return &mirror{}, nil }),
	}
}
