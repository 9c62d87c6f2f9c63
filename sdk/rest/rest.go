// Package rest gives a process's memory back to the system when it rests after work, such as reading everything there is: Go's runtime keeps room for as much
// garbage as there was, and a process that does nothing doesn't collect it.
package rest

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// after is how long a process must have done next to nothing.
	after = 2 * time.Second
	// nothing is what it may have allocated meanwhile, worth what it must have allocated before it is worth a collection.
	nothing, worth = 256 << 10, 8 << 20
)

// Watch does so until ctx ends. Whenever the process rests, it is asked whether there is something to give back, whatever was allocated; before is called first.
func Watch(ctx context.Context, something func() bool, before func()) {
	tick := time.NewTicker(after)
	defer tick.Stop()
	last, done := allocated(), uint64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := allocated()
		if now-last < nothing && (done == 0 || now-done > worth || something()) { // at the first rest, what the start of the program left
			before()
			debug.FreeOSMemory()
			done = now
		}
		last = now
	}
}

// allocated returns the bytes that were ever allocated.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
