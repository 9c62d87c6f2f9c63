package operations

import (
	"context"
	"errors"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/rollout"
	"github.com/coxswain-mesh/coxswain/core/control/internal/rollout/meter"
	"github.com/coxswain-mesh/coxswain/core/report"
)

// Metric is what the stage of a push watches, of a Prometheus server.
type Metric = meter.Config

// Rollout is the stages of pushes, as people and the metric's reader see them.
type Rollout struct {
	c     *Core
	meter *meter.Meter // nil: no metric is watched
}

// NewRollout returns that of a core; where stages watch no metric, that one is not used. The error
// says what is wrong with its URL.
func NewRollout(c *Core, metric Metric) (r *Rollout, err error) {
	r = &Rollout{c: c}
	if c.Middle.Rollout.Measures() {
		r.meter, err = meter.New(metric)
	}
	return r, err
}

// Run reads the metric, if there is one, while a stage is watched, until ctx ends.
func (r *Rollout) Run(ctx context.Context) {
	if r.meter != nil {
		r.meter.Run(ctx, r.Watches, r.Measured)
	}
}

// ErrNoStage is the answer to an order about a stage when there is none.
var ErrNoStage = rollout.ErrNoStage

// ErrNoStages is the answer to an order where pushes have no stages.
var ErrNoStages = errors.New("pushes have no stages: the setting rolloutFirst names the proxies that try changes first")

// Status is how far the stage is.
func (r *Rollout) Status() report.Stage {
	return Locked(r.c, func() report.Stage { return r.c.Middle.Rollout.Status() })
}

// Shown is how far the stage is, and which connected proxies it has served what was before it.
func (r *Rollout) Shown() report.Rollout {
	return Locked(r.c, func() report.Rollout {
		out := report.Rollout{Stage: r.c.Middle.Rollout.Status(), Held: []report.PinnedProxy{}}
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

// Promote serves all proxies what is live. The error is ErrNoStages or ErrNoStage.
func (r *Rollout) Promote() (report.Stage, error) {
	return r.order(func() error { return r.c.Middle.Rollout.Promote() })
}

// Abort serves all proxies what was served before the stage; why is told to who asks. The error is
// ErrNoStages or ErrNoStage.
func (r *Rollout) Abort(why string) (report.Stage, error) {
	return r.order(func() error { return r.c.Middle.Rollout.Abort(why) })
}

func (r *Rollout) order(do func() error) (report.Stage, error) {
	if r.Status().State == report.Off {
		return report.Stage{}, ErrNoStages
	}
	if err := r.c.Do(do); err != nil {
		return report.Stage{}, err
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
