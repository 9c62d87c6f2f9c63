package xds

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestOverload: as memory gets short, first no stream may begin, and those that there are go on; then the heaviest end. When there is enough again, all is as
// before.
func TestOverload(t *testing.T) {
	var used, relieved atomic.Uint64
	source := oneCluster()
	server, conn := serve(t, Config{
		Source: source, OrderPatience: -1, Limits: limits(func(l *budget.Limits) { l.Peer.Streams = 0 }),
		Memory:  func() (uint64, uint64) { return used.Load(), 10 << 20 },
		Relieve: func() { relieved.Add(1) },
	})
	now := func(percent uint64) {
		used.Store(percent * (10 << 20) / 100)
		server.weigh()
	}
	light, heavy := open(t, conn), open(t, conn)
	ask(t, light, sotw(node(), cds).sotw)
	receiveNames(t, light)
	ask(t, heavy, sotw(padded(100<<10), cds).sotw)
	receiveNames(t, heavy)

	now(85)
	if err := say(t, conn, sotw(node(), cds)); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "memoryLimit") {
		t.Fatal("a new stream:", err)
	}
	if why := server.Overloaded(); !strings.Contains(why, "memoryLimit") {
		t.Error(why)
	}
	source.change(func(r map[string]map[string]string) { r[cds]["b"] = "1" })
	for _, s := range []sotwStream{light, heavy} {
		if got := receiveNames(t, s); !slices.Equal(got, []string{"a", "b"}) {
			t.Error("while no stream may begin:", got)
		}
	}
	if n := count(t, server.metrics.overload); n != 1 {
		t.Error(n)
	}

	now(95)
	if _, err := heavy.Recv(); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "memoryLimit") {
		t.Error("the heaviest stream:", err)
	}
	eventually(t, func() bool { return len(server.Status()) == 1 })
	now(95) // the light one isn't worth it
	source.change(func(r map[string]map[string]string) { r[cds]["c"] = "1" })
	if got := receiveNames(t, light); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Error(got)
	}

	if n := relieved.Load(); n != 3 {
		t.Error("relieved", n, "times")
	}

	now(50)
	if err := say(t, conn, sotw(node(), cds)); err != nil || server.Overloaded() != "" || count(t, server.metrics.overload) != 0 || relieved.Load() != 3 {
		t.Error(err, server.Overloaded())
	}
	if b := server.Budget().(Budget); b.State != "calm" || len(b.Peers) != 1 || b.Peers[0].Streams != 2 {
		t.Errorf("%+v", b)
	}
}
