package swap

import (
	"context"
	"errors"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/operations"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// standing is a plugin beside the one that is served.
type standing struct {
	trial   *operations.Trial
	process *host.Standby
	program stamp
}

// wait does something that ends early, with the reason, when the process ends.
func (st *standing) wait(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	gone := st.process.Gone()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-gone:
			cancel(operations.ErrEnded)
		case <-stop:
		}
	}()
	err := do(ctx)
	if errors.Is(err, operations.ErrEnded) {
		<-gone
		if why := st.process.Err(); why != nil {
			return why
		}
	}
	return err
}

// end ends the process and forgets the trial.
func (st *standing) end() {
	st.process.Stop()
	st.trial.End()
}

// patience is how long an entry may take from its start until it has said all.
func patience(e *manifest.Entry) time.Duration {
	all := e.Limits.Start + e.Limits.Configure + e.Limits.Sync
	if e.Plugin != "" && e.Artifact == nil {
		all += e.Pull.Timeout
	}
	if e.Wasm != nil || e.Plugin != "" {
		all += e.Limits.Compile
	}
	return all
}
