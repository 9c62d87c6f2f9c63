package sdk_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// TestDeclarations: each kind's declaration becomes its words of the contract.
func TestDeclarations(t *testing.T) {
	const noConfig = `{"type":"object","additionalProperties":false}`
	typ := sdk.Type{Url: mirrored}
	run := func(ctx context.Context, out sdk.Publisher) error { return out.Synced() }
	derive := sdk.DeriverFunc(func(context.Context, *state.Change, sdk.Publisher) error { return nil })
	generate := sdk.GeneratorFuncs{}
	patch := sdk.PatchFunc(func(*state.State, string, map[string]string, []sdk.Resource) ([]sdk.Resource, []string, error) {
		return nil, nil, nil
	})
	authenticate := sdk.AuthenticatorFunc(func(context.Context, sdk.Credentials) ([]string, error) { return nil, nil })
	for name, c := range map[string]struct {
		declared sdk.Declaration
		want     pb.Ready
	}{
		"registry": {
			sdk.RegistryPlugin{
				Name: "p", Version: "2", Reads: []string{"a@sources"}, Publishes: []string{state.Services},
				New: sdk.WithoutConfig(func() (sdk.Registry, error) { return sdk.RegistryFunc(run), nil }),
			},
			pb.Ready{Kind: pb.KindRegistry, PluginVersion: "2", Reads: []*pb.Read{{Table: "a", Sources: true}}, Publishes: []string{state.Services}},
		},
		"config source": {
			sdk.ConfigSourcePlugin{
				Name: "p", Reads: []string{"a"}, Publishes: []string{"b"},
				New: sdk.WithoutConfig(func() (sdk.ConfigSource, error) { return sdk.ConfigSourceFunc(run), nil }),
			},
			pb.Ready{Kind: pb.KindConfig, Reads: []*pb.Read{{Table: "a"}}, Publishes: []string{"b"}},
		},
		"controller": {
			sdk.ControllerPlugin{
				Name: "p", Reads: []string{"a"}, Publishes: []string{"b"},
				New: sdk.WithoutConfig(func() (sdk.Controller, error) { return sdk.ControllerFunc(run), nil }),
			},
			pb.Ready{Kind: pb.KindController, Reads: []*pb.Read{{Table: "a"}}, Publishes: []string{"b"}},
		},
		"deriver of services": {
			sdk.DeriverPlugin{
				Name: "p", Reads: []string{"a"}, Publishes: []string{state.Services},
				New: sdk.WithoutConfig(func() (sdk.Deriver, error) { return derive, nil }),
			},
			pb.Ready{Kind: pb.KindRegistry, Derives: true, Reads: []*pb.Read{{Table: "a"}}, Publishes: []string{state.Services}},
		},
		"deriver of config": {
			sdk.DeriverPlugin{
				Name: "p", Reads: []string{"a"}, Publishes: []string{"b"},
				New: sdk.WithoutConfig(func() (sdk.Deriver, error) { return derive, nil }),
			},
			pb.Ready{Kind: pb.KindConfig, Derives: true, Reads: []*pb.Read{{Table: "a"}}, Publishes: []string{"b"}},
		},
		"generator": {
			sdk.GeneratorPlugin{
				Name: "p", Reads: []string{"a"}, Types: []sdk.Type{typ},
				New: sdk.WithoutConfig(func() (sdk.Generator, error) { return generate, nil }),
			},
			pb.Ready{Kind: pb.KindGenerator, Reads: []*pb.Read{{Table: "a"}}, Types: []*pb.Type{&typ}},
		},
		"engine": {
			sdk.EnginePlugin{
				Name: "p", Reads: []string{"a"}, Types: []sdk.Type{typ},
				New: sdk.WithoutConfig(func() (sdk.Engine, error) { return &mirror{}, nil }),
			},
			pb.Ready{Kind: pb.KindGenerator, Reads: []*pb.Read{{Table: "a"}}, Types: []*pb.Type{&typ}},
		},
		"patch": {
			sdk.PatchPlugin{
				Name: "p", Reads: []string{"a"}, Types: []sdk.Type{typ}, Names: []string{"x*"}, Facts: []string{"zone"}, JSON: true,
				New: sdk.WithoutConfig(func() (sdk.Patch, error) { return patch, nil }),
			},
			pb.Ready{
				Kind: pb.KindPatch, Reads: []*pb.Read{{Table: "a"}}, Types: []*pb.Type{&typ},
				Names: []string{"x*"}, Facts: []string{"zone"}, Json: true,
			},
		},
		"authenticator": {
			sdk.AuthenticatorPlugin{
				Name: "p", New: sdk.WithoutConfig(func() (sdk.Authenticator, error) { return authenticate, nil }),
			},
			pb.Ready{Kind: pb.KindAuthenticator},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Version, c.want.Plugin, c.want.ConfigSchema = 1, "p", []byte(noConfig)
			got := plugintest.Start(t, c.declared, `{}`).Ready()
			if !reflect.DeepEqual(got, &c.want) {
				t.Errorf("got  %+v\nwant %+v", got, &c.want)
			}
			if _, reason := plugintest.Refusal(t, c.declared, `{"a": 1}`); reason != "this plugin takes no config: leave it out" {
				t.Errorf("with a config: %s", reason)
			}
		})
	}
}

// shop is a config.
type shop struct {
	File  string        `json:"file" required:"true" doc:"The file that is read."`
	Every time.Duration `json:"every" min:"1s" doc:"How often."`
	Ports []port        `json:"ports"`
}

type port struct {
	Number uint16 `json:"number" min:"1"`
}

// Check is an sdk.Checker's.
func (s *shop) Check() error {
	if s.File == "-" {
		return &sdk.FieldError{Field: "file", Err: errors.New("standard input is the core's")}
	}
	return nil
}

// TestConfig: a config is read strictly, checked, and described by a schema.
func TestConfig(t *testing.T) {
	var got shop
	p := sdk.RegistryPlugin{
		Name: "p",
		New: sdk.WithConfig(shop{Every: time.Minute}, func(c shop) (sdk.Registry, error) {
			got = c
			return sdk.RegistryFunc(func(context.Context, sdk.Publisher) error { return nil }), nil
		}),
	}
	for _, c := range []struct{ config, field, reason string }{
		{``, "file", "is missing: The file that is read."},
		{`{"fiel": "a"}`, "fiel", `unknown; did you mean "file"?`},
		{`{"file": "a", "every": "1ms"}`, "every", "1ms is less than 1s, which is the least"},
		{`{"file": "a", "ports": [{"number": 80}, {"number": "http"}]}`, "ports[1].number", `expected a number from 0 to 65535, not "http"`},
		{`{"file": "-"}`, "file", "standard input is the core's"},
	} {
		err := sdk.Check(p, []byte(c.config))
		var field *sdk.FieldError
		if !errors.As(err, &field) || field.Field != c.field || field.Err.Error() != c.reason {
			t.Errorf("%s: %v", c.config, err)
		}
	}
	ready := plugintest.Start(t, p, `{"file": "a", "ports": [{"number": 80}]}`).Ready()
	if want := (shop{"a", time.Minute, []port{{80}}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	const schema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","additionalProperties":false,` +
		`"required":["file"],"properties":{"file":{"type":"string","description":"The file that is read."},` +
		`"every":{"type":"string","default":"1m","description":"How often."},` +
		`"ports":{"type":"array","items":{"type":"object","additionalProperties":false,` +
		`"properties":{"number":{"type":"integer","minimum":1,"maximum":65535}}}}}}`
	if string(ready.ConfigSchema) != schema || string(sdk.ConfigSchema(p)) != schema {
		t.Errorf("schema %s", ready.ConfigSchema)
	}
}

// TestMistakesOfDeclarations: what the compiler can't see is said when the plugin starts.
func TestMistakesOfDeclarations(t *testing.T) {
	for _, p := range []sdk.Declaration{
		sdk.PatchPlugin{Name: "p"},
		sdk.AuthenticatorPlugin{New: sdk.WithoutConfig(func() (sdk.Authenticator, error) { return nil, nil })},
	} {
		if err := sdk.Check(p, nil); err == nil {
			t.Errorf("%+v counts", p)
		}
	}
}
