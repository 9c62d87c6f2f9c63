package control

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/serving"

	"github.com/coxswain-mesh/coxswain/core/state"
)

func newPages(st *state.State, sv *serving.Parts, holdMax time.Duration, overdue func(*state.Session) (int, time.Time)) *pages {
	return &pages{
		holdMax: holdMax, env: st.Env, clock: st.Clock, roster: st.Roster, course: st.Course, conns: st.Connections, losses: sv.Losses,
		overdue: overdue,
	}
}
