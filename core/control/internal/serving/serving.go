package serving

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/patch"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/history"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/seen"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"golang.org/x/time/rate"
)

// Parts is what connections are served: its parts, lower ones first.
type Parts struct {
	Patches *Patches
	Losses  *Losses
	Screen  *Screen
	Placer  *Placer
	Streams *Streams
	// Quarantine is which resources proxies refuse.
	Quarantine *Quarantine
	// Blame tells sources of it.
	Blame *Blame
	// Crowds are namespaces that are full.
	Crowds *Crowds
	// Clients tells controllers who is connected.
	Clients *Clients
	// Pins are who sees what was served at a revision.
	Pins *Pins
}

// Config of Serving.
type Config struct {
	// Patience is how long a patch is waited for.
	Patience  time.Duration
	Retention placement.Retention
	// Instead judges what connections are about to be shown in place of the guards (held: it is not
	// shown), or does not (judges).
	Instead func(next state.Shown) (held, judges bool)
	Earlier Earlier
}

// Earlier is what connections are served that is not the newest.
type Earlier struct {
	// Seen dates the rows whose sources don't; nil: it begins with knowing nothing.
	Seen *seen.Seen
	// NoQuarantine: what most proxies of a view refuse is held for none of the others.
	NoQuarantine bool
	// Spare are full names of the types of HTTP filters, beside Envoy's own, that proxies which
	// refuse them may do without: they decide nothing.
	Spare []string
	// NoPushes: what pushes are for, and whom they reach, is not kept. There can be no history
	// then.
	NoPushes bool
	// History keeps what connections were served, so that it can be served again; nil: none does.
	History *history.History
}

// New returns one that serves nobody yet.
func New(st *state.State, cfg Config) *Parts {
	s := &Parts{}
	s.Patches = &Patches{state: st, Patience: cfg.Patience, made: patch.NewMade()}
	s.Losses = &Losses{
		state: st, Holds: guard.NewHolds[*state.Connection](), instead: cfg.Instead,
	}
	s.Quarantine = newQuarantine(st, s.Patches, cfg.Earlier.NoQuarantine, cfg.Earlier.Spare)
	s.Pins = newPins(st)
	s.Screen = &Screen{
		state: st, patches: s.Patches, losses: s.Losses, quarantine: s.Quarantine, pins: s.Pins, history: cfg.Earlier.History,
		stale: placement.NewStale[*state.Connection](),
	}
	s.Blame = &Blame{state: st, quarantine: s.Quarantine, told: map[*state.Session][]pb.Blamed{}}
	s.Crowds = newCrowds(st)
	s.Clients = &Clients{state: st, of: map[*state.Session]*audience{}}
	s.Quarantine.stale = s.Screen.stale.Spoil
	s.Placer = &Placer{
		state: st, screen: s.Screen, retention: cfg.Retention,
	}
	s.Streams = &Streams{
		state: st, patches: s.Patches, losses: s.Losses, screen: s.Screen, placer: s.Placer, quarantine: s.Quarantine,
		refusals: rate.NewLimiter(state.LogsPerSecond, state.LogsAtOnce),
	}
	return s
}
