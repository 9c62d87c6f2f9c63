package sdk_test

import (
	"context"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// hearing is a source that wants to know what proxies refuse.
type hearing struct{ heard chan []sdk.Blame }

func (hearing) Run(ctx context.Context, _ sdk.Publisher) error {
	<-ctx.Done()
	return nil
}

func (h hearing) Blame(rows []sdk.Blame) { h.heard <- rows }

// TestBlamed: a source that wants it is told what proxies refuse, and when that is over; one that
// doesn't says so in Ready.
func TestBlamed(t *testing.T) {
	h := hearing{make(chan []sdk.Blame, 2)}
	for name, p := range map[string]sdk.Declaration{
		"config":     sdk.ConfigSourcePlugin{Name: "hearing", Version: "1", New: sdk.WithoutConfig(func() (sdk.ConfigSource, error) { return h, nil })},
		"registry":   sdk.RegistryPlugin{Name: "hearing", Version: "1", New: sdk.WithoutConfig(func() (sdk.Registry, error) { return h, nil })},
		"controller": sdk.ControllerPlugin{Name: "hearing", Version: "1", New: sdk.WithoutConfig(func() (sdk.Controller, error) { return h, nil })},
	} {
		t.Run(name, func(t *testing.T) {
			x := plugintest.Start(t, p, nil)
			if !x.Ready().Blame {
				t.Fatal("it does not ask for it")
			}
			row := &pb.Blamed{Table: "t", Key: "k", Type: "T", Resource: "r", Reason: "no", Held: true, Proxies: 3, Parts: "virtual host x"}
			for _, m := range []*pb.Blame{{Rows: []*pb.Blamed{row}}, {}} {
				if err := x.Link().Send(t.Context(), &pb.FromCore{Blame: m}); err != nil {
					t.Fatal(err)
				}
			}
			want := sdk.Blame{Table: "t", Key: "k", Type: "T", Resource: "r", Reason: "no", Held: true, Proxies: 3, Parts: "virtual host x"}
			if got := <-h.heard; len(got) != 1 || got[0] != want {
				t.Errorf("%+v", got)
			}
			if got := <-h.heard; len(got) != 0 {
				t.Errorf("%+v", got)
			}
		})
	}
	deaf := sdk.RegistryPlugin{Name: "deaf", Version: "1", New: sdk.WithoutConfig(func() (sdk.Registry, error) {
		return sdk.RegistryFunc(func(ctx context.Context, _ sdk.Publisher) error { <-ctx.Done(); return nil }), nil
	})}
	if plugintest.Start(t, deaf, nil).Ready().Blame {
		t.Error("one that can't hear asks for it")
	}
}
