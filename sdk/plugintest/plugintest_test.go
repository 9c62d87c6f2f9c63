package plugintest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestMain(m *testing.M) { wait.Main(m) }

func TestRegistry(t *testing.T) {
	p := sdk.RegistryPlugin{
		Name: "one", Publishes: []string{"services"}, Reads: []string{"namespaces"},
		New: sdk.WithoutConfig(func() (sdk.Registry, error) {
			return sdk.RegistryFunc(func(ctx context.Context, out sdk.Publisher) error {
				s := &sdk.Service{Host: "a.example.com", Namespace: "default"}
				if err := out.Update("services", []*sdk.Row{sdk.ServiceRow(s)}, nil); err != nil {
					return err
				}
				if err := out.Update("endpoints", nil, nil); err == nil {
					return errors.New("published into a table that was not declared")
				}
				s1, newer := out.State() // what the test changes comes after Synced
				if err := out.Synced(); err != nil {
					return err
				}
				s2 := s1
				for s2.Table("namespaces").Len() == 0 { // the first state, which has none, may come after s1
					<-newer
					s2, newer = out.State()
				}
				out.Log(sdk.Info, "namespaces", "before", s1.Table("namespaces").Len(), "after", s2.Table("namespaces").Len())
				<-ctx.Done()
				return nil
			}), nil
		}),
	}
	h := plugintest.Start(t, p, nil)
	h.WaitSynced()
	if r := h.Rows("services")["default/a.example.com"]; r == nil {
		t.Fatalf("rows: %v", h.Rows("services"))
	}
	h.Update("namespaces", []*sdk.Row{{Key: "default"}})
	h.WaitLog(func(_ sdk.Level, text string, fields map[string]string) bool {
		return text == "namespaces" && fields["before"] == "0" && fields["after"] == "1"
	})
}

func TestRefusal(t *testing.T) {
	p := sdk.ControllerPlugin{
		Name: "strict",
		New: sdk.WithoutConfig(func() (sdk.Controller, error) {
			return nil, &sdk.FieldError{Field: "services[2].port", Err: errors.New("must be a number")}
		}),
	}
	field, reason := plugintest.Refusal(t, p, `{}`)
	if field != "services[2].port" || reason != "must be a number" {
		t.Errorf("field %q, reason %q", field, reason)
	}
}

// upper derives a table of upper-case keys.
func upper() sdk.DeriverPlugin {
	return sdk.DeriverPlugin{
		Name: "upper", Reads: []string{"in"}, Publishes: []string{"out"},
		New: sdk.WithoutConfig(func() (sdk.Deriver, error) {
			return sdk.DeriverFunc(func(_ context.Context, c *state.Change, out sdk.Publisher) error {
				for _, k := range c.Keys["in"] {
					row := c.State.Row("in", k)
					if row == nil {
						if err := out.Update("out", nil, []string{strings.ToUpper(k)}); err != nil {
							return err
						}
						continue
					}
					if k == "panic" {
						panic("as asked")
					}
					if err := out.Update("out", []*sdk.Row{{Key: strings.ToUpper(k), Payload: row.Payload}}, nil); err != nil {
						return err
					}
				}
				return nil
			}), nil
		}),
	}
}

func TestDeriver(t *testing.T) {
	h := plugintest.Start(t, upper(), nil)
	if r := h.Ready(); !r.Derives || r.Kind.String() != "KIND_CONFIG" {
		t.Errorf("ready: %+v", r)
	}
	h.Update("in", []*sdk.Row{{Key: "a"}, {Key: "b"}})
	h.Update("in", []*sdk.Row{{Key: "c"}, {Key: "panic"}}, "a")
	if got := len(h.Rows("out")); got != 2 {
		t.Errorf("a failed Derive published: %v", h.Rows("out"))
	}
	if f := h.Faults(); len(f) != 1 || !strings.Contains(f[0].Reason, "plugintest_test.go") {
		t.Errorf("faults: %+v", f)
	}
	h.Update("in", nil, "panic")
	if got := h.Rows("out"); len(got) != 2 || got["C"] == nil || got["B"] == nil {
		t.Errorf("what had failed did not come again: %v", got)
	}
}

const (
	cds = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	eds = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
)

// rowsAsResources generates a resource of each row of services, for the view that the proxy's
// address names.
func rowsAsResources() sdk.GeneratorPlugin {
	return sdk.GeneratorPlugin{
		Name: "gen", Reads: []string{"services", "endpoints"}, Types: []sdk.Type{{Url: cds}, {Url: eds}},
		New: sdk.WithoutConfig(func() (sdk.Generator, error) {
			return sdk.GeneratorFuncs{
				PlaceFunc: func(s *state.State, p *sdk.Proxy) (map[string]string, error) {
					if p.RemoteAddress == "" {
						return nil, errors.New("where are you?")
					}
					return map[string]string{cds: p.RemoteAddress, eds: "all"}, nil
				},
				GenerateFunc: func(s *state.State, typeURL, view string, names []string) ([]sdk.Resource, error) {
					table := map[string]string{cds: "services", eds: "endpoints"}[typeURL]
					var all []sdk.Resource
					for k, r := range s.Table(table).All() {
						if string(r.Payload) == "bad" {
							return nil, errors.New("a bad row")
						}
						all = append(all, sdk.Resource{Name: k, Body: r.Payload})
					}
					return all, nil
				},
			}, nil
		}),
	}
}

func TestGenerator(t *testing.T) {
	h := plugintest.Start(t, rowsAsResources(), nil)
	big := make([]byte, 3<<20)
	h.Commit(
		plugintest.Rows{Table: "services", Upserts: []*sdk.Row{{Key: "a", Payload: []byte("1")}, {Key: "b", Payload: []byte("1")}}},
		plugintest.Rows{Table: "endpoints", Upserts: []*sdk.Row{{Key: "x", Payload: []byte("1")}}},
	)
	one := h.Attach(&sdk.Proxy{Connection: 1, RemoteAddress: "10.0.0.1", Types: []string{cds, eds}})
	two := h.Attach(&sdk.Proxy{Connection: 2, RemoteAddress: "10.0.0.2", Types: []string{cds, eds}})
	if one[cds] == two[cds] || one[eds] != two[eds] {
		t.Errorf("views: %v %v", one, two)
	}
	if why := h.AttachRefused(&sdk.Proxy{Connection: 3, Types: []string{cds}}); why != "where are you?" {
		t.Errorf("refused with %q", why)
	}
	if got := h.Resources(1, cds); fmt.Sprint(got) != "map[a:[49] b:[49]]" {
		t.Errorf("clusters: %v", got)
	}
	if got := h.Resources(2, eds, "x", "y"); fmt.Sprint(got) != "map[x:[49] y:[]]" {
		t.Errorf("endpoints: %v", got)
	}
	if h.Bodies() != 1 {
		t.Errorf("equal bodies were sent %d times", h.Bodies())
	}
	h.Update("services", []*sdk.Row{{Key: "c", Payload: []byte("2")}}, "a")
	if got := h.View(one[cds]); fmt.Sprint(got) != "map[b:[49] c:[50]]" {
		t.Errorf("clusters after a change: %v", got)
	}
	h.Update("services", []*sdk.Row{{Key: "b", Payload: []byte("bad")}})
	if got := h.View(one[cds]); len(got) != 2 || len(h.Faults()) == 0 {
		t.Errorf("a failed view did not keep its last good: %v, faults %v", got, h.Faults())
	}
	h.WaitDone(h.Overtake([]*sdk.Row{{Key: "y", Payload: []byte("3")}}))
	h.Settle() // A Generator does not overtake; the rows are committed next.
	if got := h.View(one[eds]); string(got["y"]) != "3" {
		t.Errorf("endpoints after they overtook: %v", got)
	}
	h.Update("services", []*sdk.Row{{Key: "b", Payload: big[:1000]}, {Key: "d", Payload: big[:900_000]}})
	if got := h.View(one[cds]); len(got["d"]) != 900_000 {
		t.Errorf("large body: %d", len(got["d"]))
	}
}
