package control

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/serving"

	"github.com/coxswain-mesh/coxswain/core/state"
	"github.com/coxswain-mesh/coxswain/core/store"
)

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
func NewStages(st *state.State, sv *serving.Parts, cfg StagesConfig) *Stages {
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
func NewPlugins(st *state.State, sv *serving.Parts, sg *Stages, holdMax time.Duration) *Plugins {
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

func newPages(st *state.State, sv *serving.Parts, holdMax time.Duration, overdue func(*state.Session) (int, time.Time)) *pages {
	return &pages{
		holdMax: holdMax, env: st.Env, clock: st.Clock, roster: st.Roster, course: st.Course, conns: st.Connections, losses: sv.Losses,
		overdue: overdue,
	}
}
