package serving

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/view"
)

// Exchange gives each connection the new generator's views; the old one keeps its own.
func (st *Streams) Exchange(name string, last *state.Session, shadow *state.Shadow) {
	next := st.state.Roster.Session(name)
	for _, conn := range st.state.Connections.Sorted() {
		had := conn.Generators
		st.state.Roster.Assign(conn)
		before, after := state.TypesOf(had, name), conn.ServedBy(name)
		if last != nil && conn.Attached[name] {
			last.Shadow.Attach(conn, before)
		}
		if why := shadow.Refused(conn); why != "" {
			conn.Refuse(name, why)
		}
		for _, url := range slices.Compact(slices.Sorted(slices.Values(append(before, after...)))) {
			if n, ok := conn.Places.Drop(url, next); ok && n.View != nil {
				st.placer.unwant(n.Session, n.View, conn.Subs[url], true)
			}
			switch to := shadow.View(conn, url); {
			case slices.Contains(after, url) && to != nil:
				st.takeOver(next, conn, url, to)
			case !slices.Contains(after, url) && conn.Generators[url] == "":
				st.placer.move(next, conn, url, nil)
			}
		}
		if shadow.Attached(conn) {
			conn.Know(name)
		} else {
			conn.Forget(name)
			st.placer.Introduce(conn, name, false)
		}
		st.Reattach(conn, had, name)
	}
}

// takeOver makes a placement of the new generator the served one. Its wishes are counted already.
func (st *Streams) takeOver(next *state.Session, conn *state.Connection, url string, to *view.View) {
	if conn.Places.View(url) == to {
		return
	}
	st.placer.move(next, conn, url, to)
}

// Reattach tells other generators which types of a connection are theirs now.
func (st *Streams) Reattach(conn *state.Connection, had map[string]string, except string) {
	for _, k := range st.state.Roster.Sorted() {
		s := st.state.Roster.Session(k.Name())
		before, after := state.TypesOf(had, k.Name()), conn.ServedBy(k.Name())
		if k.Name() == except || s == nil || !s.Generates() || slices.Equal(before, after) {
			continue
		}
		switch {
		case len(after) == 0 && conn.Attached[k.Name()]:
			conn.Forget(k.Name())
			s.Detach(conn)
		case conn.Attached[k.Name()]:
			s.Attach(conn, after)
		default:
			st.placer.Introduce(conn, k.Name(), false)
		}
	}
}

// LeaveGenerator gives the types that a generator served to others; those that nobody serves go.
func (st *Streams) LeaveGenerator(conn *state.Connection, name string) {
	had := conn.Generators
	lost := conn.ServedBy(name)
	st.state.Roster.Assign(conn)
	for _, url := range lost {
		if at := conn.Places.At(url); conn.Generators[url] == "" && at.View != nil {
			st.placer.move(at.Session, conn, url, nil)
		}
	}
	st.Reattach(conn, had, name)
}
