//go:build !wasip1

package sdk

import (
	"context"
	"runtime/debug"
	"sync"

	"github.com/coxswain-mesh/coxswain/sdk/idle"
)

// giveBack returns memory to the system when the process rests after work.
func giveBack(ctx context.Context) {
	const nothing = 256 << 10
	idle.Watch(ctx, nothing, func() bool { return freed.Swap(false) }, func() { initialized() })
}

// lenient is how much garbage may gather, in percent of what is in use, while all that there is is
// read for the first time: nearly all of it is kept, so that the more often it is collected, the
// more is looked through for nothing.
const lenient = 200

// beLenient goes for a process until initialized.
func beLenient() {
	before := debug.SetGCPercent(lenient)
	if before < 0 || before > lenient {
		debug.SetGCPercent(before)
		return
	}
	initialized = sync.OnceFunc(func() { debug.SetGCPercent(before) })
}
