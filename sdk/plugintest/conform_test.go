package plugintest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// counted is a registry whose source is a number of endpoints.
type counted struct{ endpoints atomic.Int64 }

func (c *counted) plugin() sdk.RegistryPlugin {
	return sdk.RegistryPlugin{
		Name: "counted", Publishes: []string{"services", "endpoints"},
		New: sdk.WithRawConfig(nil, func(config []byte) (sdk.Registry, error) {
			if config != nil {
				return nil, &sdk.FieldError{Field: "x", Err: errors.New("there is nothing to configure")}
			}
			return c, nil
		}),
	}
}

func (c *counted) Run(ctx context.Context, out sdk.Publisher) error {
	list := sdk.NewList(out)
	for ctx.Err() == nil {
		if err := list.Set(c.read()); err != nil {
			return err
		}
		_ = sdk.Sleep(ctx, time.Millisecond)
	}
	return nil
}

func (c *counted) read() ([]*sdk.Service, []*sdk.Endpoint) {
	endpoints := make([]*sdk.Endpoint, c.endpoints.Load())
	for i := range endpoints {
		endpoints[i] = &sdk.Endpoint{Host: "a.example", Namespace: "test", PortName: "http", Address: "127.0.0.1", Port: uint32(i)}
	}
	return []*sdk.Service{{Host: "a.example", Namespace: "test"}}, endpoints
}

func TestConformRegistry(t *testing.T) {
	var c counted
	plugintest.Conform(t, plugintest.Suite{
		Kind: "registry", BadConfigs: []any{`{"a": 1}`}, Many: 20_000,
		Source: func(rows int) error { c.endpoints.Store(int64(rows)); return nil },
	}, plugintest.Memory(c.plugin()))
}

func TestConformEngine(t *testing.T) {
	defaults := func(_ context.Context, change *state.Change, out sdk.Publisher) error {
		for _, name := range change.Keys[state.Namespaces] {
			if err := out.Update(state.Workloads, []*sdk.Row{sdk.WorkloadRow(&sdk.Workload{Namespace: name, Name: "default"})}, nil); err != nil {
				return err
			}
		}
		return nil
	}
	plugintest.Conform(t, plugintest.Suite{Kind: "registry"}, plugintest.Memory(sdk.DeriverPlugin{
		Name: "defaults", Reads: []string{state.Namespaces}, Publishes: []string{state.Workloads},
		New: sdk.WithoutConfig(func() (sdk.Deriver, error) { return sdk.DeriverFunc(defaults), nil }),
	}))
}

func registry(run func(context.Context, sdk.Publisher) error) sdk.RegistryPlugin {
	return sdk.RegistryPlugin{
		Name: "rogue", Publishes: []string{"services"},
		New: sdk.WithoutConfig(func() (sdk.Registry, error) { return sdk.RegistryFunc(run), nil }),
	}
}

// answers is a controller that answers calls.
type answers func(context.Context, sdk.Call) ([]byte, error)

func (answers) Run(ctx context.Context, _ sdk.Publisher) error { <-ctx.Done(); return nil }

func (answers) Methods() []string { return []string{"/test.Echo/Say"} }

func (a answers) Call(ctx context.Context, c sdk.Call) ([]byte, error) { return a(ctx, c) }

func answering(call answers) sdk.Declaration {
	return sdk.ControllerPlugin{Name: "echo", New: sdk.WithoutConfig(func() (sdk.Controller, error) { return call, nil })}
}

// holders is a deriver that reads a table, of which it says that its rows are secrets, and does
// something with each of its rows.
func holders(do func(sdk.Publisher, *sdk.Row) error) sdk.DeriverPlugin {
	return sdk.DeriverPlugin{
		Name: "holders", Reads: []string{"example.com/Account"}, Publishes: []string{"example.com/Holder"}, Secrets: []string{"example.com/Account"},
		New: sdk.WithoutConfig(func() (sdk.Deriver, error) {
			return sdk.DeriverFunc(func(_ context.Context, change *state.Change, out sdk.Publisher) error {
				for _, key := range change.Keys["example.com/Account"] {
					if row := change.State.Table("example.com/Account").Get(key); row != nil {
						if err := do(out, row); err != nil {
							return err
						}
					}
				}
				return nil
			}), nil
		}),
	}
}

// TestConformSecrets: a deriver that makes rows of secrets' keys passes.
func TestConformSecrets(t *testing.T) {
	own := []*sdk.Row{{Key: "test/own", Payload: []byte("own")}}
	plugintest.Conform(t, plugintest.Suite{Kind: "config", Many: 1000, Rows: map[string][]*sdk.Row{"example.com/Account": own}},
		plugintest.Memory(holders(func(out sdk.Publisher, row *sdk.Row) error {
			return out.Update("example.com/Holder", []*sdk.Row{{Key: row.Key}}, nil)
		})))
}

// TestConformCalled: a controller that answers calls passes.
func TestConformCalled(t *testing.T) {
	plugintest.Conform(t, plugintest.Suite{Kind: "controller", Many: 1000}, plugintest.Memory(answering(func(_ context.Context, c sdk.Call) ([]byte, error) {
		return c.Request, nil
	})))
}

// TestSuiteFindsFaults: each of these plugins has one, and the case that is for it says so, with
// the messages that led there.
func TestSuiteFindsFaults(t *testing.T) {
	var n atomic.Int64
	stuck := make(chan struct{})
	t.Cleanup(func() { close(stuck) })
	generate := func(s *state.State, typeURL, view string, names []string) ([]sdk.Resource, error) {
		return []sdk.Resource{{Name: "a", Body: fmt.Append(nil, n.Add(1))}}, nil
	}
	for _, c := range []struct {
		fault, in, says string
		plugin          sdk.Declaration
	}{
		{"a table that was not declared", "ready", "add it to Publishes of its declaration", registry(func(_ context.Context, out sdk.Publisher) error {
			return out.Update("endpoints", []*sdk.Row{{Key: "a"}}, nil)
		})},
		{"a key that is not the payload's", "whole state", `"test/a.example"`, registry(func(_ context.Context, out sdk.Publisher) error {
			row := sdk.ServiceRow(&sdk.Service{Host: "a.example", Namespace: "test"})
			row.Key = "a.example"
			return errors.Join(out.Update("services", []*sdk.Row{row}, nil), out.Synced())
		})},
		{"other bytes each time", "reconnect", "has other bytes", registry(func(_ context.Context, out sdk.Publisher) error {
			s := &sdk.Service{Host: "a.example", Namespace: "test", Name: fmt.Sprint(n.Add(1))}
			return errors.Join(out.Update("services", []*sdk.Row{sdk.ServiceRow(s)}, nil), out.Synced())
		})},
		{"a generator that counts", "differences", "than after a fresh start", sdk.GeneratorPlugin{
			Name: "rogue", Reads: []string{"endpoints"}, Types: []sdk.Type{{Url: "type.googleapis.com/envoy.config.cluster.v3.Cluster"}},
			New: sdk.WithoutConfig(func() (sdk.Generator, error) { return sdk.GeneratorFuncs{GenerateFunc: generate}, nil }),
		}},
		{"a patch that counts", "reconnect", "asked twice", sdk.PatchPlugin{
			Name: "rogue", Types: []sdk.Type{{Url: eds}},
			New: sdk.WithoutConfig(func() (sdk.Patch, error) {
				return sdk.PatchFunc(func(_ *state.State, _ string, _ map[string]string, r []sdk.Resource) ([]sdk.Resource, []string, error) {
					return []sdk.Resource{{Name: "a", Body: fmt.Append(nil, n.Add(1))}}, nil, nil
				}), nil
			}),
		}},
		{"a request that is repeated", "hostile requests", "repeats the request", answering(func(_ context.Context, c sdk.Call) ([]byte, error) {
			return nil, &sdk.CallError{Code: 3, Message: fmt.Sprintf("what is %s?", c.Request)}
		})},
		{"a request that is logged", "hostile requests", "the log repeats the request", answering(func(_ context.Context, c sdk.Call) ([]byte, error) {
			return nil, fmt.Errorf("what is %s?", c.Request)
		})},
		{"a call that nobody can end", "called while it ends", "did not end within", answering(func(context.Context, sdk.Call) ([]byte, error) {
			<-stuck
			return nil, nil
		})},
		{
			"a secret in the log", "secrets in words",
			"the log has a secret that is in a row of the table example.com/Account",
			holders(func(out sdk.Publisher, row *sdk.Row) error {
				out.Log(sdk.Warn, "it can't be read", "text", string(row.Payload))
				return nil
			}),
		},
		{"a secret in a row", "secrets in words", "the row planted of example.com/Holder has a secret", holders(func(out sdk.Publisher, row *sdk.Row) error {
			return out.Update("example.com/Holder", []*sdk.Row{row}, nil)
		})},
		{
			"a secret in an error", "secrets in words",
			"has a secret that is in a row of the table example.com/Account",
			holders(func(_ sdk.Publisher, row *sdk.Row) error {
				return fmt.Errorf("what is %s?", row.Payload)
			}),
		},
		{"secrets of nobody's", "ready", "neither reads nor publishes nor writes it", sdk.ControllerPlugin{
			Name: "rogue", Secrets: []string{"example.com/Account"}, New: sdk.WithoutConfig(func() (sdk.Controller, error) { return answers(nil), nil }),
		}},
		{"a leak", "secrets in refusals", "repeats the token", sdk.AuthenticatorPlugin{Name: "rogue", New: sdk.WithoutConfig(func() (sdk.Authenticator, error) {
			return sdk.AuthenticatorFunc(func(_ context.Context, c sdk.Credentials) ([]string, error) {
				return nil, fmt.Errorf("what is %s?", c.Bearer())
			}), nil
		})}},
	} {
		t.Run(c.fault, func(t *testing.T) {
			var found []string
			plugintest.Suite{Only: c.in, Many: 1000}.Run(plugintest.Memory(c.plugin), func(r plugintest.Result) { found = append(found, r.Failures...) })
			if text := strings.Join(found, "\n"); !strings.Contains(text, c.says) || !strings.Contains(text, "core   -> ") {
				t.Errorf("found %q", found)
			}
		})
	}
}

// TestMany: the environment says how many endpoints are many, where the suite doesn't.
func TestMany(t *testing.T) {
	for _, c := range []struct{ said, fails string }{
		{"70", ""},
		{"0", `COXSWAIN_MANY is "0": it is how many endpoints are many, 1 or more`},
		{"10k", `COXSWAIN_MANY is "10k": it is how many endpoints are many, 1 or more`},
	} {
		t.Setenv("COXSWAIN_MANY", c.said)
		most := 0
		plugin := upper()
		plugin.New = sdk.WithoutConfig(func() (sdk.Deriver, error) {
			return sdk.DeriverFunc(func(_ context.Context, c *state.Change, _ sdk.Publisher) error {
				most = max(most, c.State.Table("endpoints").Len())
				return nil
			}), nil
		})
		plugin.Reads = []string{"endpoints"}
		var failed []string
		plugintest.Suite{Only: "many endpoints"}.Run(plugintest.Memory(plugin), func(r plugintest.Result) { failed = append(failed, r.Failures...) })
		if got := strings.Join(failed, "; "); got != c.fails {
			t.Errorf("%s: %q", c.said, got)
		}
		if c.fails == "" && most != 70 {
			t.Errorf("at most %d endpoints came", most)
		}
	}
}

// TestPatience: how long is waited for a plugin can be said, and is said where it was too short.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := plugintest.Memory(registry(func(ctx context.Context, _ sdk.Publisher) error { <-ctx.Done(); return nil }))
		target.Patience = 0.001
		var found []string
		plugintest.Suite{Only: "whole state"}.Run(target, func(r plugintest.Result) { found = append(found, r.Failures...) })
		if text := strings.Join(found, "\n"); !strings.Contains(text, "no Synced within 20ms") {
			t.Errorf("found: %s", text)
		}
	})
}

// TestProgressIsWaitedFor: who says that work goes on is waited for longer, but not forever.
func TestProgressIsWaitedFor(t *testing.T) {
	for name, c := range map[string]struct {
		signs int
		says  string // "": it passes
	}{
		"work that ends": {signs: 3}, "work that stops": {3, "no Synced within 1m5s"}, "work without an end": {1000, "no Synced within 2m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				target := plugintest.Memory(registry(func(ctx context.Context, out sdk.Publisher) error {
					for range c.signs {
						select {
						case <-ctx.Done():
							return nil
						case <-time.After(15 * time.Second):
							sdk.Progress(ctx)
						}
					}
					if c.says == "" {
						_ = out.Synced()
					}
					<-ctx.Done()
					return nil
				}))
				target.Patience = 1
				var found []string
				plugintest.Suite{Only: "reconnect"}.Run(target, func(r plugintest.Result) { found = append(found, r.Failures...) })
				if text := strings.Join(found, "\n"); !strings.Contains(text, c.says) || (text == "") != (c.says == "") {
					t.Errorf("found: %s", text)
				}
			})
		})
	}
}
