package trial

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Shadow is what a session says while another of its name is served: it may take its place, or was
// replaced by it and is kept warm. It is fed as the served one is, and holds what the tables and
// the connections, C, would have from it.
type Shadow[C comparable] struct {
	rows  environment.Tables
	conns map[C]*connection
}

// connection is one as a shadow sees it.
type connection struct {
	types   []string
	placed  map[string]*view.View
	refused string
}

// NewShadow returns the shadow of a session that has said these rows, and knows no connection.
func NewShadow[C comparable](rows environment.Tables) *Shadow[C] {
	return &Shadow[C]{rows: rows, conns: map[C]*connection{}}
}

// Rows are what it would publish.
func (sh *Shadow[C]) Rows() environment.Tables { return sh.rows }

// Synced takes all rows at once, instead of those that there were.
func (sh *Shadow[C]) Synced(rows environment.Tables) { sh.rows = rows }

// Put makes rows part of what it would publish.
func (sh *Shadow[C]) Put(tables []*pb.TableRows) {
	for _, t := range tables {
		for _, r := range t.Upserts {
			sh.rows.Put(t.Table, r)
		}
		for _, k := range t.Deletes {
			delete(sh.rows[t.Table], k)
		}
	}
}

// Attach notes that the session knows of a connection, and which types it would serve to it; nil:
// those that it would before.
func (sh *Shadow[C]) Attach(conn C, types []string) {
	at := sh.conns[conn]
	if at == nil {
		at = &connection{placed: map[string]*view.View{}}
		sh.conns[conn] = at
	}
	if types != nil {
		at.types = types
	}
}

// Attached reports whether the session knows of a connection.
func (sh *Shadow[C]) Attached(conn C) bool { return sh.conns[conn] != nil }

// at returns what is known of a connection; an empty one if that is nothing.
func (sh *Shadow[C]) at(conn C) *connection {
	if at := sh.conns[conn]; at != nil {
		return at
	}
	return &connection{}
}

// Types are those that it would serve to a connection.
func (sh *Shadow[C]) Types(conn C) []string { return sh.at(conn).types }

// Serves reports whether it would serve a type to a connection.
func (sh *Shadow[C]) Serves(conn C, typeURL string) bool {
	return slices.Contains(sh.at(conn).types, typeURL)
}

// View is where it has placed a connection; nil: nowhere.
func (sh *Shadow[C]) View(conn C, typeURL string) *view.View { return sh.at(conn).placed[typeURL] }

// Refuse notes that it would not serve a connection, and why; empty: it would.
func (sh *Shadow[C]) Refuse(conn C, why string) {
	sh.Attach(conn, nil)
	sh.conns[conn].refused = why
}

// Refused is why it would not serve a connection; empty: it would.
func (sh *Shadow[C]) Refused(conn C) string { return sh.at(conn).refused }

// Place moves a connection into a view, nil: out of all. It returns the view that the connection
// was in.
func (sh *Shadow[C]) Place(conn C, typeURL string, to *view.View) (before *view.View) {
	sh.Attach(conn, nil)
	at := sh.conns[conn]
	before = at.placed[typeURL]
	if to != nil {
		at.placed[typeURL] = to
	} else {
		delete(at.placed, typeURL)
	}
	return before
}

// Keep leaves a connection in the view in which it was while the session was served, unless the
// session has placed it anew since. It reports whether it did.
func (sh *Shadow[C]) Keep(conn C, typeURL string, v *view.View) bool {
	if sh.View(conn, typeURL) != nil {
		return false
	}
	sh.Place(conn, typeURL, v)
	return true
}

// Leave forgets a connection, and returns the views that it was in, by type.
func (sh *Shadow[C]) Leave(conn C) map[string]*view.View {
	placed := sh.at(conn).placed
	delete(sh.conns, conn)
	return placed
}
