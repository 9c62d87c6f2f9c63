package operations

import (
	"errors"
	"time"

	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/rollout"
)

// Rollout is the stages of pushes, as people and the metric's reader see them.
type Rollout struct{ c *Core }

// NewRollout returns that of a core.
func NewRollout(c *Core) *Rollout { return &Rollout{c} }

// ErrNoStages is the answer to an order where pushes have no stages.
var ErrNoStages = errors.New("pushes have no stages: the setting rolloutFirst names the proxies that try changes first")

// Status is how far the stage is.
func (r *Rollout) Status() rollout.Status {
	return Locked(r.c, func() rollout.Status { return r.c.Middle.Rollout.Status() })
}

// Shown is how far the stage is, and which connected proxies it has served what was before it.
func (r *Rollout) Shown() report.Rollout {
	return Locked(r.c, func() report.Rollout {
		out := report.Rollout{Status: r.c.Middle.Rollout.Status(), Held: []report.PinnedProxy{}}
		pins := r.c.Middle.Serving.Pins
		if pins.Stage() == nil {
			return out
		}
		for _, conn := range r.c.Middle.State.Connections.Sorted() {
			if pins.Of(conn) == pins.Stage() {
				out.Held = append(out.Held, pinned(conn, pins.Types(conn)))
			}
		}
		return out
	})
}

// Promote serves all proxies what is live. The error is ErrNoStages or rollout.ErrNoStage.
func (r *Rollout) Promote() (rollout.Status, error) {
	return r.order(func() error { return r.c.Middle.Rollout.Promote() })
}

// Abort serves all proxies what was served before the stage; why is told to who asks. The error is
// ErrNoStages or rollout.ErrNoStage.
func (r *Rollout) Abort(why string) (rollout.Status, error) {
	return r.order(func() error { return r.c.Middle.Rollout.Abort(why) })
}

func (r *Rollout) order(do func() error) (rollout.Status, error) {
	if r.Status().State == rollout.Off {
		return rollout.Status{}, ErrNoStages
	}
	if err := r.c.Do(do); err != nil {
		return rollout.Status{}, err
	}
	return r.Status(), nil
}

// Watches reports whether the metric is to be read now.
func (r *Rollout) Watches() bool {
	return Locked(r.c, func() bool { return r.c.Middle.Rollout.Watches() })
}

// Measured takes a value of the metric, or why there is none; asked is when it was asked for.
func (r *Rollout) Measured(value float64, err error, asked time.Time) {
	_ = r.c.Do(func() error { r.c.Middle.Rollout.Measured(value, err, asked); return nil })
}
