package xds

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestOverload: as memory gets short, first no stream may begin, and those that there are go on;
// then the heaviest end. When there is enough again, all is as before.
func TestOverload(t *testing.T) {
	var used, relieved atomic.Uint64
	source := oneCluster()
	server, conn := serve(t, Config{
		Source: source, OrderPatience: -1, Limits: limits(func(l *budget.Limits) { l.Peer.Streams = 0 }),
		Memory:  func() (uint64, uint64) { return used.Load(), 10 << 20 },
		Relieve: func(uint64, bool) { relieved.Add(1) },
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

// TestOverloadEnds: who uses little less than what streams are refused from is let in again, after
// a while.
func TestOverloadEnds(t *testing.T) {
	at := time.Now()
	p := &pressure{}
	for i, c := range []struct {
		after time.Duration
		used  uint64
		want  budget.Level
	}{
		{0, 85, budget.Shedding}, {budget.Rest, 81, budget.Shedding}, {budget.Rest - 1, 79, budget.Shedding}, {1, 79, budget.Calm},
		{time.Hour, 95, budget.Ending}, {budget.Rest, 86, budget.Shedding}, {budget.Rest, 86, budget.Shedding}, {1, 60, budget.Calm},
	} {
		at = at.Add(c.after)
		if p = p.next(c.used, 100, at); p.level != c.want {
			t.Errorf("%d: %v, not %v", i, p.level, c.want)
		}
	}
}

// TestOverloadedStreamsDontGrow: while the heaviest are ended, one that asks for much more ends at
// once, and one that asks for little goes on.
func TestOverloadedStreamsDontGrow(t *testing.T) {
	var used atomic.Uint64
	server, conn := serve(t, Config{Source: oneCluster(), OrderPatience: -1, Memory: func() (uint64, uint64) { return used.Load(), 10 << 20 }})
	light, heavy := open(t, conn), open(t, conn)
	for _, s := range []sotwStream{light, heavy} {
		ask(t, s, sotw(node(), cds).sotw)
		receiveNames(t, s)
	}
	used.Store(95 * (10 << 20) / 100)
	server.weigh()
	ask(t, heavy, sotw(node(), eds, strings.Repeat("x", 4000), strings.Repeat("y", 4000), strings.Repeat("z", 4000)).sotw)
	if _, err := heavy.Recv(); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "memoryLimit") {
		t.Error(err)
	}
	ask(t, light, sotw(node(), eds, "a").sotw)
	if _, err := light.Recv(); err != nil {
		t.Error(err)
	}
}
