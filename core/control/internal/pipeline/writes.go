package pipeline

import (
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/control/internal/store"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Writes are requests for objects where they are kept.
type Writes struct {
	state  *state.State
	Stores *store.Requests[*state.Session]
}

// HandleStore sends a request on, or answers it if that can't be. Only one that leaves answers
// unread is blamed.
func (w *Writes) HandleStore(s *state.Session, m *pb.Store, now time.Time) error {
	to := store.Route[*state.Session]{
		Asker: s.Name(), Served: s.Shadow == nil, Allowed: s.MayStore(m.Table), Writers: w.state.Roster.Writers(m.Table),
	}
	for _, k := range w.state.Roster.Sorted() { // who could say where it is changed
		if to.Publisher == "" && k.Ready != nil && slices.Contains(k.Ready.Publishes, m.Table) {
			to.Publisher, to.Plugin = k.Name(), k.Ready.Plugin
		}
	}
	on, wake, err := w.Stores.Ask(s, m, to, now)
	switch {
	case on != nil:
		to.Writers[0].Session.Out.Call(&pb.FromCore{Store: on})
	case wake:
		w.state.Roster.Rouse(to.Writers[0].Name)
	}
	w.TellStores()
	return err
}

// TellStores sends answers.
func (w *Writes) TellStores() {
	for _, a := range w.Stores.Answers() {
		a.To.Out.Call(&pb.FromCore{Stored: a.Stored})
	}
}

// HandleStored sends an answer on.
func (w *Writes) HandleStored(s *state.Session, m *pb.Stored) {
	switch known, late := w.Stores.Answered(s, m); {
	case !known:
		w.state.Metrics.Unknown(s.Name(), "answer", 1)
	case late:
		w.state.Metrics.Unknown(s.Name(), "late answer", 1)
	}
	w.TellStores()
}

// StoredSent notes that an answer was handed to the carrier.
func (w *Writes) StoredSent(s *state.Session, m *pb.Stored) { w.Stores.Sent(s, m) }

// LateStores answers requests that were not answered in time. A writer that leaves too many is
// started again.
func (w *Writes) LateStores(now time.Time, at func(time.Time)) {
	for _, x := range w.Stores.Late(now, at) {
		s := x.Writer.Session
		w.state.Metrics.Crossed(s.Name(), "call")
		if s.Plugin.Slow.AllowN(now, 1) {
			w.state.Log.Warn("a store did not answer in time", "plugin", s.Name(), "limit", s.Limits().Call)
		}
		if x.Hangs != nil {
			s.Cancel(x.Hangs)
		}
	}
	w.TellStores()
}
