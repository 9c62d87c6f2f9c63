package idle

import (
	"context"
	"runtime/metrics"
	"testing"
	"time"
)

var kept []byte

// released are the bytes that Go's runtime has given back, or never had.
func released() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// TestWatch: what was let go of goes back to the system while the process rests, once; and again
// where there is something.
func TestWatch(t *testing.T) {
	const large = 64 << 20
	ctx, cancel := context.WithCancel(t.Context())
	rests, something := make(chan bool, 10), make(chan bool, 1)
	ended := make(chan struct{})
	kept = make([]byte, large)
	for i := range kept {
		kept[i] = 1
	}
	before := released()
	kept = nil
	go func() {
		defer close(ended)
		Watch(ctx, 1<<20, func() bool {
			select {
			case <-something:
				return true
			default:
				return false
			}
		}, func() { rests <- true })
	}()
	await := func(what string) {
		t.Helper()
		select {
		case <-rests:
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: it does not rest", what)
		}
	}
	await("at first")
	deadline := time.Now().Add(20 * time.Second)
	for released() < before+large/2 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	if now := released(); now < before+large/2 {
		t.Errorf("%d bytes were given back before, %d now", before, now)
	}
	select {
	case <-rests:
		t.Error("it gives back what it hasn't got")
	case <-time.After(3 * after):
	}
	something <- true
	await("there is something")
	cancel()
	<-ended
}

// TestDue: looks come every two seconds; a process that allocates less than 1 MB between two of
// them rests.
func TestDue(t *testing.T) {
	const mb = 1 << 20
	type look struct {
		allocates, alive uint64
		something, due   bool
	}
	for _, c := range []struct {
		name  string
		looks []look
	}{
		{"what the start left goes at the first rest", []look{{allocates: 50 * mb, alive: 20 * mb}, {alive: 20 * mb, due: true}, {alive: 20 * mb}}},
		{"work is not disturbed", []look{{allocates: 5 * mb}, {allocates: 5 * mb}, {allocates: 100 * mb, alive: 400 * mb}}},
		{"much goes at once", []look{{due: true}, {allocates: 9 * mb, alive: 20 * mb}, {alive: 20 * mb, due: true}, {alive: 20 * mb}}},
		{"a little goes after a long rest", []look{{due: true}, {allocates: 2 * mb, alive: 20 * mb}, {}, {}, {due: true}, {}, {}, {}}},
		{
			"less than a part of what is alive stays",
			[]look{{due: true}, {allocates: 2 * mb, alive: 640 * mb}, {alive: 640 * mb}, {alive: 640 * mb}, {alive: 640 * mb}},
		},
		{"work ends a rest", []look{{due: true}, {allocates: 2 * mb}, {}, {}, {allocates: 2 * mb}, {}, {}, {due: true}}},
		{"who has something to give back is heard", []look{{due: true}, {something: true, due: true}, {}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, all := watch{less: mb}, uint64(0)
			if c.looks[0].due {
				all = 1 // some allocation that the start made
			}
			for i, l := range c.looks {
				all += l.allocates
				if got := w.due(all, l.alive, func() bool { return l.something }); got != l.due {
					t.Fatalf("look %d, after %v: due is %v", i, time.Duration(i)*after, got)
				}
			}
		})
	}
}
