package control

import (
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/store"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// takeStore sends a request on, or answers it if that can't be. Only one that leaves answers unread
// is blamed.
func (w *writes) takeStore(s *session, m *pb.Store, now time.Time) error {
	to := store.Route[*session]{
		Asker: s.Name(), Served: s.shadow == nil, Allowed: s.mayStore(m.Table), Writers: w.roster.writers(m.Table),
	}
	for _, k := range w.roster.sorted() { // who could say where it is changed
		if to.Publisher == "" && k.ready != nil && slices.Contains(k.ready.Publishes, m.Table) {
			to.Publisher, to.Plugin = k.Name(), k.ready.Plugin
		}
	}
	on, wake, err := w.stores.Ask(s, m, to, now)
	switch {
	case on != nil:
		to.Writers[0].Session.out.Call(&pb.FromCore{Store: on})
	case wake:
		w.roster.rouse(to.Writers[0].Name)
	}
	w.tellStores()
	return err
}

// tellStores sends answers.
func (w *writes) tellStores() {
	for _, a := range w.stores.Answers() {
		a.To.out.Call(&pb.FromCore{Stored: a.Stored})
	}
}

// writers returns the plugins that said last that they take writes of a table, in declared order.
func (r *roster) writers(table string) (all []store.Writer[*session]) {
	for _, k := range r.sorted() {
		if k.ready != nil && slices.Contains(k.ready.Writes, table) {
			s := r.session(k.Name())
			all = append(all, store.Writer[*session]{Name: k.Name(), Session: s, Lives: s != nil, Sleeps: s == nil && k.Sleep.Asleep, Call: k.Expected.Limits.Call})
		}
	}
	return all
}

// warnOfWriters says that a plugin takes writes of what another one writes.
func (r *roster) warnOfWriters(k *known) {
	for _, table := range k.ready.Writes {
		if all := r.writers(table); len(all) > 1 {
			r.log.Warn("nothing is written: "+store.Many(table, all), "plugin", k.Name())
			return
		}
	}
}

// takeStored sends an answer on.
func (w *writes) takeStored(s *session, m *pb.Stored) {
	switch known, late := w.stores.Answered(s, m); {
	case !known:
		w.metrics.Unknown(s.Name(), "answer", 1)
	case late:
		w.metrics.Unknown(s.Name(), "late answer", 1)
	}
	w.tellStores()
}

// storedSent notes that an answer was handed to the carrier.
func (w *writes) storedSent(s *session, m *pb.Stored) { w.stores.Sent(s, m) }

// lateStores answers requests that were not answered in time. A writer that leaves too many is
// started again.
func (w *writes) lateStores(now time.Time, at func(time.Time)) {
	for _, x := range w.stores.Late(now, at) {
		s := x.Writer.Session
		w.metrics.Crossed(s.Name(), "call")
		if s.plugin.slow.AllowN(now, 1) {
			w.log.Warn("a store did not answer in time", "plugin", s.Name(), "limit", s.Limits().Call)
		}
		if x.Hangs != nil {
			s.cancel(x.Hangs)
		}
	}
	w.tellStores()
}
