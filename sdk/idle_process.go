//go:build !wasip1

package sdk

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	// idleAfter is how long a process must have done next to nothing.
	idleAfter = 2 * time.Second
	// nothing is what it may have allocated meanwhile, worth what it must have allocated before it is worth a collection.
	nothing, worth = 256 << 10, 8 << 20
)

// giveBack returns memory to the system when the process rests after work, such as reading everything there is: Go's runtime keeps room for as much
// garbage as there was, and a process that does nothing doesn't collect it.
func giveBack(ctx context.Context) {
	tick := time.NewTicker(idleAfter)
	defer tick.Stop()
	last, done := allocated(), uint64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := allocated()
		if now-last < nothing && (now-done > worth || freed.Swap(false)) {
			settle()
			debug.FreeOSMemory()
			done = now
		}
		last = now
	}
}

// lenient is how much garbage may gather, in percent of what is in use, while all that there is is read for the first time: nearly all of it is kept, so
// that the more often it is collected, the more is looked through for nothing.
const lenient = 100

// beLenient goes for a process until settle.
func beLenient() {
	before := debug.SetGCPercent(lenient)
	if before < 0 || before > lenient {
		debug.SetGCPercent(before)
		return
	}
	settle = sync.OnceFunc(func() { debug.SetGCPercent(before) })
}

// allocated returns the bytes that were ever allocated.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
