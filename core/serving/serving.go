package serving

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/patch"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/state"
	"golang.org/x/time/rate"
)

// Parts is what connections are served: its parts, lower ones first.
type Parts struct {
	Patches *Patches
	Losses  *Losses
	Screen  *Screen
	Placer  *Placer
	Streams *Streams
}

// Config of Serving.
type Config struct {
	// Patience is how long a patch is waited for.
	Patience  time.Duration
	Retention placement.Retention
	// Instead judges what connections are about to be shown in place of the guards (held: it is not
	// shown), or does not (judges).
	Instead func(next state.Shown) (held, judges bool)
}

// New returns one that serves nobody yet.
func New(st *state.State, cfg Config) *Parts {
	s := &Parts{}
	s.Patches = &Patches{clock: st.Clock, roster: st.Roster, course: st.Course, Patience: cfg.Patience, made: patch.NewMade()}
	s.Losses = &Losses{
		log: st.Log, clock: st.Clock, env: st.Env, roster: st.Roster, course: st.Course, conns: st.Connections, instances: st.Instances,
		Holds: guard.NewHolds[*state.Connection](), instead: cfg.Instead,
	}
	s.Screen = &Screen{
		log: st.Log, metrics: st.Metrics, clock: st.Clock, env: st.Env, roster: st.Roster, course: st.Course, conns: st.Connections,
		patches: s.Patches, losses: s.Losses, stale: placement.NewStale[*state.Connection](),
	}
	s.Placer = &Placer{
		log: st.Log, metrics: st.Metrics, clock: st.Clock, roster: st.Roster, course: st.Course, conns: st.Connections,
		screen: s.Screen, retention: cfg.Retention,
	}
	s.Streams = &Streams{
		log: st.Log, clock: st.Clock, roster: st.Roster, course: st.Course, conns: st.Connections,
		patches: s.Patches, losses: s.Losses, screen: s.Screen, placer: s.Placer,
		refusals: rate.NewLimiter(state.LogsPerSecond, state.LogsAtOnce),
	}
	return s
}
