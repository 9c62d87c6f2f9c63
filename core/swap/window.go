package swap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control"
	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// window is the time after a switch in which the old instance stays warm.
type window struct {
	in      *windows
	st      *standing
	last    *manifest.Entry
	c       *attempt
	limit   guard.Share
	refused <-chan struct{}
	failed  <-chan struct{}
	// returning is closed when the old instance is to come back.
	returning chan struct{}
	// closing is closed by whoever ends it early, done when it is over.
	closing chan struct{}
	done    chan struct{}
	// recalls are commands' wishes that the old instance come back.
	recalls chan recall
}

func (w *window) run(length time.Duration) {
	defer close(w.done)
	timer := time.NewTimer(length)
	defer timer.Stop()
	var why string
	for waits := true; waits; {
		waits = false
		select {
		case r := <-w.recalls:
			over, err := w.undo(r)
			r.done <- err
			if over {
				return
			}
			waits = true
		case <-timer.C:
		case <-w.closing:
		case <-w.st.process.Gone():
		case <-w.refused:
			n, _ := w.st.trial.Refusals()
			why = fmt.Sprintf("%d proxies refused what they got, more than rollback.nackedProxies, %s", n, w.limit)
		case <-w.failed:
			why = "it failed"
		}
	}
	if why == "" || !w.back(why) {
		w.note()
		w.st.end()
		w.c.step(Kept)
	}
}

// back lets the old instance be served again. It reports whether it is.
func (w *window) back(why string) bool {
	close(w.returning)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-w.closing:
			cancel(errors.New("something else changes the plugin"))
		case <-over:
		}
	}()
	release, err := w.in.turn.acquire(ctx)
	if err != nil {
		return false
	}
	defer release()
	next := w.in.running.now()
	if w.last != nil {
		next = next.With(w.last)
	}
	w.note()
	err = w.st.wait(ctx, func(ctx context.Context) error {
		return w.st.trial.Switch(ctx, control.RulesOf(next), func(*guard.Difference) error { return nil })
	})
	if err != nil {
		w.c.note("it could not be rolled back: %v", err)
		return false
	}
	if _, err := w.st.process.Exchange(); err != nil {
		w.c.note("%v", err)
	}
	if w.last != nil {
		now, _ := w.in.running.now().Get(w.last.Name)
		w.in.pasts.returned(w.c, w.last, now)
	}
	w.in.running.becomes(next)
	w.st.end()
	w.in.editor.unwrite(w.c)
	says, _ := w.in.file.now()
	if in, _ := says.Get(w.c.shown.Plugin); in != nil && w.last != nil && !manifest.Same(in, w.last) {
		w.c.note("plugins.yaml still names what was rolled back; coxswain plugins swap %s tries it again", w.c.shown.Plugin)
	}
	w.c.step(RolledBack, why)
	return true
}

// note keeps what proxies said.
func (w *window) note() {
	_, lines := w.st.trial.Refusals()
	w.c.refused(lines)
}

// errOver is that a window is over, so that nothing is warm any more.
var errOver = errors.New("the window is over")

// recall is a command's wish that the old instance come back. Whoever sends it has the turn.
type recall struct {
	ctx  context.Context
	c    *attempt
	o    Options
	done chan error
}

// over reports whether the old instance is gone, or back.
func (w *window) over() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// recall lets the old instance be served again, or only compares it.
func (w *window) recall(ctx context.Context, c *attempt, o Options) error {
	r := recall{ctx, c, o, make(chan error, 1)}
	defer c.explain()
	select {
	case w.recalls <- r:
		return <-r.done
	case <-w.done:
		return errOver
	case <-w.returning:
		err := errors.New("the swap is being rolled back already")
		c.step(Failed, err.Error())
		return err
	case <-ctx.Done():
		c.step(Failed, context.Cause(ctx).Error())
		return context.Cause(ctx)
	}
}

// undo does what a recall wants. It reports whether the window is over with that.
func (w *window) undo(r recall) (over bool, err error) {
	ctx, cancel := context.WithCancelCause(r.ctx)
	defer cancel(nil)
	answered := make(chan struct{})
	defer close(answered)
	go func() {
		select {
		case <-w.closing:
			cancel(errors.New("the control plane ends"))
		case <-w.refused: // it comes back by itself, which must not wait
			cancel(errors.New("proxies refuse what they got: it is being rolled back already"))
		case <-w.failed:
			cancel(errors.New("it failed: it is being rolled back already"))
		case <-answered:
		}
	}()
	now, _ := w.in.running.now().Get(w.last.Name)
	next := w.in.running.now().With(w.last)
	err = w.st.wait(ctx, func(ctx context.Context) error {
		return w.st.trial.Switch(ctx, control.RulesOf(next), func(d *guard.Difference) error {
			r.c.found(d)
			return judge(guardOf(w.last).Check(d), r.o)
		})
	})
	if err != nil {
		return false, r.c.stopped(err)
	}
	w.note()
	if _, err := w.st.process.Exchange(); err != nil {
		r.c.note("%v", err)
	}
	w.in.running.becomes(next)
	w.in.pasts.replaced(r.c, now, w.last)
	w.st.end()
	w.c.unaudited() // the command's own entry says it
	w.c.step(RolledBack, "it was asked for: coxswain plugins rollback")
	r.c.step(Switched)
	r.c.step(Kept)
	return true, nil
}

// rollbackOf is an entry's rollback, or the default.
func rollbackOf(e *manifest.Entry) (limit guard.Share, window time.Duration) {
	limit, window = guard.Share{Percent: 5}, 5*time.Minute
	if r := e.Rollback; r != nil {
		if r.NackedProxies != (manifest.Share{}) {
			limit = guard.Share(r.NackedProxies)
		}
		if r.Window > 0 {
			window = r.Window
		}
	}
	return limit, window
}
