package rest

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

// TestWatch: what was let go of goes back to the system while the process rests, once; and again where there is something.
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
