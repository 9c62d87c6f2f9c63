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
	s.Patches = &Patches{state: st, Patience: cfg.Patience, made: patch.NewMade()}
	s.Losses = &Losses{
		state: st, Holds: guard.NewHolds[*state.Connection](), instead: cfg.Instead,
	}
	s.Screen = &Screen{
		state: st, patches: s.Patches, losses: s.Losses, stale: placement.NewStale[*state.Connection](),
	}
	s.Placer = &Placer{
		state: st, screen: s.Screen, retention: cfg.Retention,
	}
	s.Streams = &Streams{
		state: st, patches: s.Patches, losses: s.Losses, screen: s.Screen, placer: s.Placer,
		refusals: rate.NewLimiter(state.LogsPerSecond, state.LogsAtOnce),
	}
	return s
}
