// Package idle gives a process's memory back to the system when it rests after work, such as
// reading everything there is: Go's runtime keeps room for as much garbage as there was, a process
// that does nothing doesn't collect it, and pages of the program that only the start needed stay
// mapped.
package idle

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// after is how long a process must have done next to nothing, and long how long until little is
	// worth a collection, too.
	after, long = 2 * time.Second, 6 * time.Second
	// worth is what it must have allocated before that for a collection to be worth while, and
	// share the part of what is alive that it must be.
	worth, share = 8 << 20, 4
	// little and part are the same after a long rest: what was still in use when it began, such as
	// by those that it had served, has gone then.
	little, part = 1 << 20, 32
)

// Watch does so until ctx ends. A process rests that has allocated less than so many bytes in two
// seconds. Whenever it does, it is asked whether there is something to give back, whatever was
// allocated; before is called first.
func Watch(ctx context.Context, less uint64, something func() bool, before func()) {
	tick := time.NewTicker(after)
	defer tick.Stop()
	w := watch{less: less}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, alive := allocated()
		due := w.due(now, alive, something)
		if due {
			before()
			runtime.GC() // what lies in a sync.Pool outlives one collection
			debug.FreeOSMemory()
		}
		if due || w.rested == long { // after little work, too
			dropProgram()
		}
	}
}

// watch is what is known of a process's work. Sizes are in bytes.
type watch struct {
	less uint64
	// last is what it had ever allocated at the last look, and done at the last collection; rested
	// is for how long it has rested.
	last, done uint64
	rested     time.Duration
}

// due reports whether memory should be given back, at a look that finds how much was ever allocated
// and is alive.
func (w *watch) due(now, alive uint64, something func() bool) bool {
	rests := now-w.last < w.less
	w.last = now
	if !rests {
		w.rested = 0
		return false
	}
	w.rested += after
	enough := max(worth, alive/share)
	if w.rested >= long {
		enough = max(little, alive/part)
	}
	first := w.done == 0 // what the start of the program left goes, too
	if !first && now-w.done <= enough && !something() {
		return false
	}
	w.done = now
	return true
}

// allocated returns the bytes that were ever allocated, and those that the last collection found in
// use.
func allocated() (all, alive uint64) {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64(), s[1].Value.Uint64()
}
