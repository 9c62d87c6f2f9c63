package xds

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// TestNothingGrowsWithRequests: however often a client asks, stale or again, a stream keeps each
// name once.
func TestNothingGrowsWithRequests(t *testing.T) {
	const asked, times = 1000, 3000
	list := numbered(asked, 0)
	t.Run("stale", func(t *testing.T) {
		c := newConversation(t, time.Second)
		c.source.change(func(r map[string]map[string]string) { r[eds] = map[string]string{list[0]: "1"} })
		c.apply(c.machine.sotw(&discovery.DiscoveryRequest{TypeUrl: eds, ResourceNames: list}))
		for i := range times {
			r := &discovery.DiscoveryRequest{TypeUrl: eds, ResponseNonce: "old"}
			if i%2 == 0 {
				r.ResourceNames = list[i%asked:]
			}
			c.apply(c.machine.sotw(r))
		}
		if n := cap(c.machine.find(eds).lost); n > 2*asked {
			t.Fatalf("%d requests left %d names", times, n)
		}
	})
	t.Run("again", func(t *testing.T) {
		c := newConversation(t, time.Second)
		c.machine.delta = true
		for range times / 10 {
			c.machine.deltaRequest(&discovery.DeltaDiscoveryRequest{TypeUrl: eds, ResourceNamesSubscribe: list})
		}
		if n := cap(c.machine.find(eds).resend); n > 4*asked {
			t.Fatalf("%d requests left %d names", times/10, n)
		}
	})
	t.Run("other names", func(t *testing.T) {
		c := newConversation(t, time.Second)
		c.source.change(func(r map[string]map[string]string) { r[eds] = map[string]string{"a": "1"} })
		request := func(i int) {
			r := &discovery.DiscoveryRequest{TypeUrl: eds, ResourceNames: []string{"a", fmt.Sprint(i)}}
			if sent := c.machine.find(eds); sent != nil {
				r.ResponseNonce = sent.nonce
			}
			c.apply(c.machine.sotw(r))
			c.pending = nil
		}
		request(0)
		before := objects()
		for i := range times {
			request(i)
		}
		eventually(t, func() bool { return objects() < before+2*times }) // some of the last ones are remembered
		runtime.KeepAlive(c)
	})
}

// objects returns how many there are after a collection. Cleanups run after it, and make more
// garbage.
func objects() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapObjects
}

// TestKeptLists: lists of names that are kept for others to share take bounded memory, however long
// they are.
func TestKeptLists(t *testing.T) {
	l := newLists()
	for i := range 50 {
		r, err := newCodec().Marshal(&discovery.DiscoveryRequest{ResourceNames: numbered(20_000, 50+i)})
		if err != nil {
			t.Fatal(err)
		}
		if _, names, ok := l.cut(r.Materialize()); !ok || len(names) != 20_000 {
			t.Fatal(len(names), ok)
		}
	}
	weight := 0
	for p := range l.kept {
		weight += p.weight()
	}
	if weight != l.bytes || weight > keptBytes || weight == 0 {
		t.Fatal(weight, l.bytes)
	}
}
