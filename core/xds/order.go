package xds

import (
	"slices"
	"time"
)

// serve takes what the source serves and returns the responses that it leads to, in order, and when to be called again if the client
// stays silent (zero: not before something happens).
//
// Make before break: first what is new or changed, by rank; then, once the client has answered that, what is removed. A type later in the
// order waits for the client to accept the clusters before it and to be given the endpoints that it asks for them, so that no route is
// there before what it leads to. Whoever doesn't answer is waited for no longer than the patience.
func (m *machine) serve(now time.Time, s Served) (out []*response, alarm time.Time) {
	if s.Epoch == m.served.Epoch && s.Number < m.served.Number {
		return nil, m.alarm() // never backwards
	}
	m.served = s
	hurry := m.common.patience <= 0 || !m.held.IsZero() && !now.Before(m.held.Add(m.common.patience))
	held := false
	for _, w := range m.watches {
		if !hurry && m.waits(w) {
			held = held || m.changed(w)
			continue
		}
		if r := m.bring(w); r != nil {
			out = append(out, r)
		}
	}
	if m.leaving() {
		if held || !hurry && !m.settled() {
			held = true
		} else {
			out = append(out, m.sweep()...)
		}
	}
	switch {
	case !held:
		m.held = time.Time{}
	case m.held.IsZero():
		m.held = now
	}
	return out, m.alarm()
}

// alarm returns when the patience ends.
func (m *machine) alarm() time.Time {
	if m.held.IsZero() {
		return time.Time{}
	}
	return m.held.Add(m.common.patience)
}

// waits says whether an unasked push of a type has to wait for the client's answers to what comes earlier in the order.
func (m *machine) waits(w *watch) bool {
	if w.owed || w.subscription == nil {
		return false
	}
	for _, v := range m.watches {
		if v.traits.Rank >= w.traits.Rank {
			return false
		}
		leads := m.leads(v)
		if leads && len(v.flights) > 0 && w.traits.After != v.url {
			return true
		}
		if v.owed && v.traits.After != "" {
			return true
		}
	}
	return false
}

// leads says whether other types refer to this one's resources. Nothing refers to a listener: taking it away breaks nothing that stays,
// and keeping it for a while beside its successor at the same address would be refused.
func (m *machine) leads(v *watch) bool {
	return v.url == ClusterType || slices.ContainsFunc(m.watches, func(w *watch) bool { return w.traits.After == v.url })
}

// changed says whether there is something to send of a type.
func (m *machine) changed(w *watch) bool {
	to, _, ok := m.target(w)
	return ok && (len(w.resend) > 0 || !m.common.memo.change(w.sent, to).empty())
}

// settled says whether the client has answered everything and been answered everything.
func (m *machine) settled() bool {
	return !slices.ContainsFunc(m.watches, func(w *watch) bool { return len(w.flights) > 0 || w.owed })
}

// leaving says whether anything is to be taken from the client.
func (m *machine) leaving() bool {
	return slices.ContainsFunc(m.watches, func(w *watch) bool { return len(w.gone) > 0 })
}

// sweep takes from the client what is gone: what refers before what is referred to, so types with full state (listeners, then clusters)
// before those that hang on them, each in reverse order of rank.
func (m *machine) sweep() (out []*response) {
	for _, roots := range []bool{true, false} {
		for _, w := range slices.Backward(m.watches) {
			if w.traits.FullState == roots {
				if r := m.remove(w); r != nil {
					out = append(out, r)
				}
			}
		}
	}
	return out
}
