package xds

import (
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/view"
)

// serve takes what the source serves and returns the responses that it leads to, in order, and when
// to be called again if the client stays silent (zero: not before something happens).
//
// A push takes the client from one revision to the next, in rounds of make before break: first what
// is new or changed, by rank; then, once the client has answered that, what is removed. A type
// later in the order waits for the client to accept the clusters before it and to be given the
// endpoints that it asks for them, so that no route is there before what it leads to. Revisions
// that come meanwhile merge and wait for the end of the push; only endpoints overtake. A client
// that doesn't answer is waited for no longer than the patience, and once.
func (m *machine) serve(now time.Time, s Served) (out []*response, alarm time.Time) {
	if s.Epoch == m.newest.Epoch && s.Number < m.newest.Number {
		return nil, m.alarm() // never backwards
	}
	m.newest, m.now = s, now
	for {
		if m.held.IsZero() || m.newest.Number == m.served.Number || m.vanished() {
			m.served = m.newest
		}
		out = append(out, m.round(now)...)
		if !m.held.IsZero() || !m.overtaken() {
			return out, m.alarm()
		}
	}
}

// ahead returns what is new of types that never wait (endpoints), while the push to their revision
// waits for its turn.
func (m *machine) ahead(s Served) (out []*response) {
	if s.Epoch == m.newest.Epoch && s.Number < m.newest.Number {
		return nil // never backwards
	}
	m.newest = s
	for _, w := range m.watches {
		if m.overtook(w) && w.answered() {
			if r := m.bring(w); r != nil {
				out = append(out, r)
			}
		}
	}
	return out
}

// overtaken reports whether the push that goes on is for a revision that isn't the newest any more.
func (m *machine) overtaken() bool {
	return m.newest.Number != m.served.Number || m.newest.Epoch != m.served.Epoch
}

// vanished reports whether the client asks for endpoints of a cluster that the push that goes on
// has brought and that is gone in the newest revision: nothing can be found for it any more, so the
// routes of that push had better not be sent.
func (m *machine) vanished() bool {
	return slices.ContainsFunc(m.watches, func(w *watch) bool {
		newest, old := m.newest.Types[w.url], m.served.Types[w.url]
		if w.traits.After == "" || !w.owed || newest == nil || w.subscription == nil {
			return false
		}
		return slices.ContainsFunc(w.subscription.names, func(n string) bool {
			now, then := newest.Get(n), old.Get(n)
			absent := now == nil && newest.Complete() || now != nil && !now.Exists()
			return absent && !w.sent.subscription.named(n) && (then == nil || !then.Exists())
		})
	})
}

// round sends what can be sent of the push that goes on, and notes since when the rest waits.
func (m *machine) round(now time.Time) (out []*response) {
	hurry := m.common.patience <= 0 || !m.held.IsZero() && !now.Before(m.held.Add(m.common.patience))
	held := false
	for _, w := range m.watches {
		if !hurry && m.waits(w) {
			held = held || m.changed(w)
		} else if r := m.bring(w); r != nil {
			out = append(out, r)
		}
	}
	if m.leaving() {
		if held = held || !hurry && !m.allAnswered(); !held {
			out = append(out, m.sweep()...)
		}
	}
	if hurry {
		m.giveUp()
	}
	switch {
	case !held:
		m.held = time.Time{}
	case m.held.IsZero():
		m.held = now
	}
	return out
}

// alarm returns when the patience ends.
func (m *machine) alarm() time.Time {
	if m.held.IsZero() {
		return time.Time{}
	}
	return m.held.Add(m.common.patience)
}

// giveUp stops waiting for what the client has not answered by now.
func (m *machine) giveUp() {
	for _, w := range m.watches {
		w.giveUp()
	}
}

// waits reports whether a type has to wait for the client to answer what comes earlier in the
// order, and to be answered. That goes for answers, too: the routes that a client asks for while
// new clusters are on their way to it may lead to these.
func (m *machine) waits(w *watch) bool {
	return slices.ContainsFunc(m.watches, func(v *watch) bool {
		switch {
		case v == w: // one push of clusters at a time: each makes the client ask for endpoints
			return m.leads(w) && !w.owed && w.awaitsAnswer()
		case v.traits.Rank >= w.traits.Rank || w.traits.After == v.url:
			return false
		case m.leads(v):
			return v.awaited()
		}
		return v.traits.After != "" && (v.owesAnswer() || v.missed && v.awaitsAnswer())
	})
}

// leads reports whether other types refer to this one's resources. Nothing refers to a listener:
// taking it away breaks nothing that stays, and keeping it for a while beside its successor at the
// same address would be refused.
func (m *machine) leads(v *watch) bool {
	return v.url == ClusterType || slices.ContainsFunc(m.watches, func(w *watch) bool { return w.traits.After == v.url })
}

// changed reports whether there is something to send of a type.
func (m *machine) changed(w *watch) bool {
	to, _, ok := m.target(w)
	return ok && (w.owed || len(w.resend) > 0 || !m.common.memo.change(w.sent, to).empty())
}

// allAnswered reports whether the client has answered everything and been answered everything.
func (m *machine) allAnswered() bool {
	return !slices.ContainsFunc(m.watches, (*watch).awaited)
}

// answeredAt is the revision of which the client has all, and has answered it; 0: something is to
// come still.
func answeredAt(m *machine) uint64 {
	open := func(w *watch) bool { return len(w.flights) > 0 || w.owed }
	if !m.held.IsZero() || m.leaving() || slices.ContainsFunc(m.watches, open) {
		return 0
	}
	return m.newest.Number
}

// newlyAnswered is answeredAt, but for what was said before.
func newlyAnswered(m *machine) uint64 {
	n := answeredAt(m)
	if n <= m.said {
		return 0
	}
	m.said = n
	return n
}

// leaving reports whether anything is to be taken from the client.
func (m *machine) leaving() bool {
	return slices.ContainsFunc(m.watches, func(w *watch) bool { return len(w.gone) > 0 && !m.overtook(w) })
}

// overtook reports whether a type is ahead of the push that goes on: endpoints never wait. What is
// gone of it goes with its own revision.
func (m *machine) overtook(w *watch) bool { return w.traits.After != "" && m.overtaken() }

// sweep takes from the client what is gone: what refers before what is referred to.
func (m *machine) sweep() (out []*response) {
	for turn := range lastTurn + 1 {
		for _, w := range slices.Backward(m.watches) {
			if m.turn(w) != turn || m.overtook(w) {
				continue
			}
			if m.returning(w) {
				return out // nor may anything go that it refers to
			}
			if r := m.remove(w); r != nil {
				out = append(out, r)
			}
		}
	}
	return out
}

// returning reports whether something that is to be taken from the client is back in a revision
// that waits: then it stays until that is pushed.
func (m *machine) returning(w *watch) bool {
	return m.overtaken() && slices.ContainsFunc(w.gone, func(g *view.Body) bool {
		b := m.newest.Types[w.url].Get(g.Name())
		return b != nil && b.Exists()
	})
}

const lastTurn = 3

// turn is a type's place in the order of removal: listeners, then routes and whatever else refers
// to clusters, then clusters, then their endpoints; within a turn in reverse order of rank.
func (m *machine) turn(w *watch) int {
	switch {
	case w.traits.After != "":
		return lastTurn
	case m.leads(w):
		return 2
	case w.traits.FullState:
		return 0
	}
	return 1
}
