package control

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/pipeline"

	"github.com/coxswain-mesh/coxswain/core/serving"

	"github.com/coxswain-mesh/coxswain/core/state"
)

// Plugins are who takes part: sessions that come and go, plugins that are declared, removed, tried
// and exchanged. Its parts, lower ones first.
type Plugins struct {
	Departure *departure
	Members   *members
	Orders    *orders
	Trials    *trials
}

// NewPlugins returns it where nobody takes part.
func NewPlugins(st *state.State, sv *serving.Parts, sg *pipeline.Parts, holdMax time.Duration) *Plugins {
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
