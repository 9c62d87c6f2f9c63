package host

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/ticks"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// memoryLook is how often a process with a limit is looked at.
const memoryLook = 200 * time.Millisecond

// memoryWatch ends a process that uses more memory than its entry allows.
type memoryWatch struct {
	running Running
	limit   manifest.Size
	stop    context.CancelFunc
	over    chan error
}

// allowance is how much memory an entry's process may use; 0: no limit.
func (ln *launcher) allowance(e *manifest.Entry) manifest.Size {
	return cmp.Or(e.Limits.Memory, ln.memory)
}

// watchMemory begins to look at a process; without a limit it never does.
func watchMemory(r Running, limit manifest.Size) *memoryWatch {
	ctx, stop := context.WithCancel(context.Background())
	w := &memoryWatch{running: r, limit: limit, stop: stop, over: make(chan error, 1)}
	if limit == 0 {
		close(w.over)
		return w
	}
	go w.run(ctx)
	return w
}

// ended ends the watch. It returns why the process was killed, nil if it was not.
func (w *memoryWatch) ended() error {
	w.stop()
	return <-w.over
}

func (w *memoryWatch) run(ctx context.Context) {
	defer close(w.over)
	for range ticks.Every(ctx, memoryLook) {
		if used := memory(w.running.PID(), uint64(w.limit)); used > uint64(w.limit) {
			w.running.Kill()
			w.over <- session.Crossed("memory", "it used %.1f MB of memory, more than it may (limits.memory, %s)", float64(used)/1e6, w.limit)
			return
		}
	}
}

// memory is what a process uses, as far as it matters to a limit: the resident size costs little to
// read, and only if that is over the limit what it shares with others is left out.
func memory(pid int, limit uint64) uint64 {
	if rss := resident(pid); rss <= limit {
		return rss
	}
	return pss(pid)
}

// resident is the resident set size of a process in bytes, or 0 where it is unknown.
func resident(pid int) uint64 {
	if pid <= 0 {
		return 0
	}
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(statm)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseUint(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}

// goMemory tells a Go program to collect more garbage, rather than to cross the limit; others
// ignore it.
func goMemory(limit manifest.Size) string {
	return fmt.Sprintf("GOMEMLIMIT=%d", limit/10*9)
}
