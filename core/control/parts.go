package control

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/patch"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/state"
	"github.com/coxswain-mesh/coxswain/core/store"
	"golang.org/x/time/rate"
)

// Serving is what connections are served: its parts, lower ones first.
type Serving struct {
	Patches *patching
	Losses  *losses
	Screen  *screen
	Placer  *placer
	Streams *streams
}

// ServingConfig of Serving.
type ServingConfig struct {
	// Patience is how long a patch is waited for.
	Patience  time.Duration
	Retention placement.Retention
	// Instead judges what connections are about to be shown in place of the guards (held: it is not
	// shown), or does not (judges).
	Instead func(next state.Shown) (held, judges bool)
}

// NewServing returns one that serves nobody yet.
func NewServing(st *state.State, cfg ServingConfig) *Serving {
	s := &Serving{}
	s.Patches = &patching{clock: st.Clock, roster: st.Roster, course: st.Course, patience: cfg.Patience, made: patch.NewMade()}
	s.Losses = &losses{
		log: st.Log, clock: st.Clock, env: st.Env, roster: st.Roster, course: st.Course, conns: st.Connections, instances: st.Instances,
		holds: guard.NewHolds[*state.Connection](), instead: cfg.Instead,
	}
	s.Screen = &screen{
		log: st.Log, metrics: st.Metrics, clock: st.Clock, env: st.Env, roster: st.Roster, course: st.Course, conns: st.Connections,
		patches: s.Patches, losses: s.Losses, stale: placement.NewStale[*state.Connection](),
	}
	s.Placer = &placer{
		log: st.Log, metrics: st.Metrics, clock: st.Clock, roster: st.Roster, course: st.Course, conns: st.Connections,
		screen: s.Screen, retention: cfg.Retention,
	}
	s.Streams = &streams{
		log: st.Log, clock: st.Clock, roster: st.Roster, course: st.Course, conns: st.Connections,
		patches: s.Patches, losses: s.Losses, screen: s.Screen, placer: s.Placer,
		refusals: rate.NewLimiter(state.LogsPerSecond, state.LogsAtOnce),
	}
	return s
}

// Stages lead rows to what connections are served: its parts, lower ones first.
type Stages struct {
	Feeder   *feeder
	Sleepers *sleepers
	Intake   *intake
	Pipeline *pipeline
	Results  *results
	Writes   *writes
}

// StagesConfig of Stages.
type StagesConfig struct {
	// HoldMax is how long a revision waits for a plugin, EndpointPatience how long endpoints wait for a
	// revision.
	HoldMax, EndpointPatience time.Duration
	// DebounceEndpoints gathers changes of endpoints, too.
	DebounceEndpoints bool
	// Served is called when a revision is served.
	Served func(number uint64)
}

// NewStages returns some that have led nothing yet.
func NewStages(st *state.State, sv *Serving, cfg StagesConfig) *Stages {
	s := &Stages{}
	s.Feeder = &feeder{env: st.Env, clock: st.Clock, roster: st.Roster, course: st.Course}
	s.Sleepers = &sleepers{env: st.Env, clock: st.Clock, roster: st.Roster, course: st.Course, conns: st.Connections}
	s.Intake = &intake{
		log: st.Log, env: st.Env, clock: st.Clock, roster: st.Roster, course: st.Course, instances: st.Instances,
		sleepers: s.Sleepers, debounceEndpoints: cfg.DebounceEndpoints,
	}
	s.Pipeline = &pipeline{
		log: st.Log, metrics: st.Metrics, timing: timing{cfg.HoldMax, cfg.EndpointPatience, cfg.DebounceEndpoints},
		env: st.Env, clock: st.Clock, roster: st.Roster, course: st.Course, conns: st.Connections, instances: st.Instances,
		patches: sv.Patches, losses: sv.Losses, screen: sv.Screen, feeder: s.Feeder, intake: s.Intake,
		startedUp: make(chan struct{}), onServed: cfg.Served,
	}
	s.Results = &results{
		log: st.Log, metrics: st.Metrics, clock: st.Clock, roster: st.Roster, course: st.Course,
		patches: sv.Patches, screen: sv.Screen, pipeline: s.Pipeline,
	}
	s.Writes = &writes{log: st.Log, metrics: st.Metrics, clock: st.Clock, roster: st.Roster, stores: store.New[*state.Session](cfg.HoldMax)}
	return s
}

// Plugins are who takes part: sessions that come and go, plugins that are declared, removed, tried
// and exchanged. Its parts, lower ones first.
type Plugins struct {
	Departure *departure
	Members   *members
	Orders    *orders
	Trials    *trials
}

// NewPlugins returns it where nobody takes part.
func NewPlugins(st *state.State, sv *Serving, sg *Stages, holdMax time.Duration) *Plugins {
	p := &Plugins{}
	p.Departure = &departure{
		holdMax: holdMax, env: st.Env, clock: st.Clock, roster: st.Roster, course: st.Course, conns: st.Connections,
		losses: sv.Losses, streams: sv.Streams, pipeline: sg.Pipeline,
	}
	p.Members = &members{
		log: st.Log, metrics: st.Metrics, env: st.Env, clock: st.Clock, roster: st.Roster, course: st.Course, conns: st.Connections,
		patches: sv.Patches, placer: sv.Placer, feeder: sg.Feeder, sleepers: sg.Sleepers, intake: sg.Intake, pipeline: sg.Pipeline,
		results: sg.Results, departure: p.Departure,
	}
	p.Orders = &orders{
		env: st.Env, clock: st.Clock, roster: st.Roster, course: st.Course, conns: st.Connections,
		losses: sv.Losses, streams: sv.Streams, screen: sv.Screen, patches: sv.Patches, intake: sg.Intake, pipeline: sg.Pipeline,
		departure: p.Departure, members: p.Members,
	}
	p.Trials = &trials{
		env: st.Env, clock: st.Clock, roster: st.Roster, course: st.Course, conns: st.Connections,
		losses: sv.Losses, streams: sv.Streams, screen: sv.Screen, patches: sv.Patches, intake: sg.Intake, pipeline: sg.Pipeline,
		all: map[string]*candidate{},
	}
	return p
}

func newPages(st *state.State, sv *Serving, holdMax time.Duration, overdue func(*state.Session) (int, time.Time)) *pages {
	return &pages{
		holdMax: holdMax, env: st.Env, clock: st.Clock, roster: st.Roster, course: st.Course, conns: st.Connections, losses: sv.Losses,
		overdue: overdue,
	}
}
