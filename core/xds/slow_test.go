package xds

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/push"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// Many who read nothing shorten how long the next are waited for, one at a time; when they have
// gone patience is as before.
func TestManyWhoNeverRead(t *testing.T) {
	source := newTwin()
	source.change(func(r map[string]map[string]string) { r[cds] = map[string]string{"a": strings.Repeat("x", 1<<20)} })
	const after = 20 * time.Millisecond
	server, conn := serve(t, Config{Source: source, SlowAfter: after, Push: push.Limits{Running: 1, Bytes: 1 << 20}})
	deaf := dial(t, conn.Target(), smallWindows)
	for range 2 * manySlow {
		ask(t, open(t, deaf), &discovery.DiscoveryRequest{Node: node(), TypeUrl: cds})
	}
	eventually(t, func() bool { return server.slow.streams.Load() == 2*manySlow })
	if got := server.slow.patience(after); got != after/shorter {
		t.Errorf("many are slow, and patience is %s", got)
	}
	s := open(t, conn)
	ask(t, s, &discovery.DiscoveryRequest{Node: node(), TypeUrl: cds})
	for i := range 3 {
		r, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		source.change(func(r map[string]map[string]string) { r[cds]["a"] = fmt.Sprint(i) })
		ask(t, s, &discovery.DiscoveryRequest{TypeUrl: cds, ResponseNonce: r.Nonce})
	}
	if err := deaf.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return server.slow.streams.Load() == 0 })
	if got := server.slow.patience(after); got != after {
		t.Errorf("none is slow, and patience is %s", got)
	}
}

// TestSlow: each stream that has yielded counts once, until it takes something again; where there
// are many, the next are not waited for as long.
func TestSlow(t *testing.T) {
	var s slow
	streams := make([]stream, manySlow)
	for i := range streams {
		if got := s.patience(time.Second); got != time.Second {
			t.Fatalf("with %d: %v", i, got)
		}
		s.note(&streams[i], true)
		s.note(&streams[i], true)
		if got := s.streams.Load(); got != int32(i+1) {
			t.Fatalf("%d streams, want %d", got, i+1)
		}
	}
	if got := s.patience(time.Second); got != time.Second/shorter {
		t.Errorf("with many: %v", got)
	}
	for range 2 {
		s.note(&streams[0], false)
	}
	if got := s.streams.Load(); got != manySlow-1 {
		t.Errorf("%d streams when one has read", got)
	}
	if got := s.patience(time.Second); got != time.Second {
		t.Errorf("with few again: %v", got)
	}
}
