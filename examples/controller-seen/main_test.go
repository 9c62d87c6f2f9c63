package main

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

func TestConformance(t *testing.T) {
	plugintest.Conform(t, plugintest.Suite{Kind: "controller"}, append(plugintest.Built(t, "."), plugintest.Memory(plugin()))...)
}

// TestSeen: the status is written once, with what it had; a conflict is tried again with what is
// there then, and what nobody had when its row is another one.
func TestSeen(t *testing.T) {
	for _, target := range append(plugintest.Built(t, "."), plugintest.Memory(plugin())) {
		t.Run(target.Carrier, func(t *testing.T) { seen(t, plugintest.StartTarget(t, target, nil)) })
	}
}

func seen(t *testing.T, h *plugintest.Harness) {
	written := make(chan string, 10)
	var refused, late atomic.Bool
	looked := make(chan struct{})
	h.OnStore(func(m *pb.Store) *pb.Stored {
		switch {
		case m.Name == "late" && !late.Swap(true):
			close(looked)
			return &pb.Stored{Code: sdk.StoreNotFound, Error: "nobody has it"}
		case m.Verb == pb.VerbGet:
			return &pb.Stored{
				Object: []byte(`{"metadata":{"name":"` + m.Name + `","finalizers":["x"]},"spec":{"n":12345678901234567890},"status":{"addresses":["a"]}}`),
			}
		case !refused.Swap(true):
			return &pb.Stored{Code: sdk.StoreConflict, Error: "it has changed"}
		}
		written <- string(m.Object)
		return &pb.Stored{Object: m.Object}
	})
	h.Update(table, []*sdk.Row{{Key: "shop/web"}})
	got := <-written
	for _, part := range []string{
		`"finalizers":["x"]`, `"n":12345678901234567890`, `"addresses":["a"]`,
		`"conditions":[{"status":"True","type":"example.com/Seen"}]`,
	} {
		if !strings.Contains(got, part) {
			t.Errorf("%s is not in %s", part, got)
		}
	}
	h.WaitLog(func(_ sdk.Level, _ string, fields map[string]string) bool {
		return strings.Contains(fields["error"], "it has changed")
	})
	h.Update(table, []*sdk.Row{{Key: "shop/web", Labels: map[string]string{"a": "b"}}, {Key: "shop/other"}})
	if got := <-written; !strings.Contains(got, `"name":"other"`) {
		t.Errorf("written again: %s", got)
	}
	h.Update(table, []*sdk.Row{{Key: "shop/late"}})
	<-looked
	h.Update(table, []*sdk.Row{{Key: "shop/late", Labels: map[string]string{"a": "b"}}}) // another source has it
	if got := <-written; !strings.Contains(got, `"name":"late"`) {
		t.Errorf("written is %s", got)
	}
}
