// Package operations is what people ask of the core, and order, that takes more than one step under
// its lock, or plugins' answers in between: why a proxy has something (Explainer), what was served
// and is served again (Past), stages of pushes (Rollout), and a plugin beside the one that is
// served (Trial). What each step does is in internal/middle and the parts below it.
package operations

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/calls"
	"github.com/coxswain-mesh/coxswain/core/control/internal/members"
	"github.com/coxswain-mesh/coxswain/core/control/internal/middle"
	"github.com/coxswain-mesh/coxswain/core/history"
)

// Core is the core's middle, and how it is reached.
type Core struct {
	Shell
	Middle  *middle.Middle
	Calls   *calls.Calls
	Log     *slog.Logger
	History *history.History
	// HoldMax is how long revisions wait for a trial.
	HoldMax time.Duration
}

// Shell is the lock of the middle, and what comes with it.
type Shell interface {
	sync.Locker
	// Do does something under the lock, and then what is due.
	Do(func() error) error
	// Await waits for an answer, without the lock. If ctx ends before it comes, leave is called
	// under it, and the error is ctx's cause.
	Await(ctx context.Context, answer <-chan error, leave func()) error
}

// Locked returns what f does under a lock.
func Locked[T any](l sync.Locker, f func() T) T {
	l.Lock()
	defer l.Unlock()
	return f()
}

// ErrEnded is why a trial cannot go on: its session ended.
var ErrEnded = members.ErrEnded
