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
	// worth is what it must have allocated before that for a collection to be worth while, and share the part of what is alive that it must be.
	worth, share = 8 << 20, 4
)

// Watch does so until ctx ends. A process rests that has allocated less than so many bytes in two seconds. Whenever it does, it is asked whether there is something to give back,
// whatever was allocated; before is called first.
func Watch(ctx context.Context, less uint64, something func() bool, before func()) {
	tick := time.NewTicker(after)
	defer tick.Stop()
	last, done := uint64(0), uint64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, alive := allocated()
		first := done == 0 // what the start of the program left goes, too
		if now-last < less && (first || now-done > max(worth, alive/share) || something()) {
			before()
			debug.FreeOSMemory()
			done = now
		}
		last = now
	}
}

// allocated returns the bytes that were ever allocated, and those that the last collection found in use.
func allocated() (all, alive uint64) {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64(), s[1].Value.Uint64()
}
