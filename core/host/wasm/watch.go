package wasm

import (
	"context"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// watch finds instances that hang: they have neither waited for input or time, nor read, nor
// written, for longer than the limit. Nothing can stop them but the end of the process.
type watch struct {
	limit time.Duration

	mu        sync.Mutex
	instances []*instance
}

func newWatch(limit time.Duration) *watch { return &watch{limit: limit} }

func (w *watch) add(i *instance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.instances = append(w.instances, i)
}

// living returns the instances that have not ended.
func (w *watch) living() []*instance {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := w.instances[:0]
	for _, i := range w.instances {
		select {
		case <-i.stdio.ended:
		default:
			kept = append(kept, i)
		}
	}
	clear(w.instances[len(kept):])
	w.instances = kept
	return append([]*instance(nil), kept...)
}

func (w *watch) empty() bool { return len(w.living()) == 0 }

// run calls hung with a reason when an instance hangs, until ctx ends. Then the process has to end;
// the kernel sees to it.
func (w *watch) run(ctx context.Context, hung context.CancelCauseFunc) {
	if w.limit <= 0 {
		return
	}
	guard := newGuard()
	tick := time.NewTicker(max(w.limit/8, 10*time.Millisecond))
	defer tick.Stop()
	for {
		guard.push(w.limit + w.limit/2 + time.Second)
		select {
		case now := <-tick.C:
			if w.busiest(now) > w.limit {
				guard.push(farewell)
				hung(session.Crossed("progress", "the module hangs: for %v it has neither waited nor read nor written (limits.progress)", w.limit))
				return
			}
		case <-ctx.Done():
			guard.stop()
			return
		}
	}
}

// farewell is how long a runner may take to say why it ends.
const farewell = ending + 2*flushing + time.Second

// busiest is for how long the instance has computed that has done so longest.
func (w *watch) busiest(now time.Time) (longest time.Duration) {
	for _, i := range w.living() {
		longest = max(longest, i.stdio.busy(now))
	}
	return longest
}
