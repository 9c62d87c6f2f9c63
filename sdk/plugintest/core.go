package plugintest

import (
	"maps"
	"slices"

	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Rows are changes of one table, for State.
type Rows struct {
	Table   string
	Upserts []*sdk.Row
	Deletes []string
}

// Update sends a State that changes one table, waits for Done if the plugin owes one, and returns
// the revision. The first Update is the whole state.
func (h *Harness) Update(table string, upserts []*sdk.Row, deletes ...string) uint64 {
	h.t.Helper()
	return h.Commit(Rows{Table: table, Upserts: upserts, Deletes: deletes})
}

// Commit sends a State that changes tables, waits for Done if the plugin owes one, and returns the
// revision.
func (h *Harness) Commit(changes ...Rows) uint64 {
	h.t.Helper()
	r := h.Send(changes...)
	h.WaitDone(r)
	return r
}

// Send is Commit without waiting.
func (h *Harness) Send(changes ...Rows) uint64 {
	h.t.Helper()
	return h.state(&pb.State{}, changes)
}

// Overtake sends endpoints that overtake, without waiting; WaitDone waits for the revision that it
// returns.
func (h *Harness) Overtake(upserts []*sdk.Row, deletes ...string) uint64 {
	h.t.Helper()
	return h.state(&pb.State{Overtakes: true}, []Rows{{Table: state.Endpoints, Upserts: upserts, Deletes: deletes}})
}

func (h *Harness) state(m *pb.State, changes []Rows) uint64 {
	h.t.Helper()
	h.mu.Lock()
	h.number++
	number := h.number
	h.mu.Unlock()
	m.Revision = &pb.Revision{Epoch: epoch, Number: number}
	m.Whole = number == 1
	size := 0
	turn := func(bytes int) {
		if size += bytes; size > 1<<19 && !m.Overtakes {
			h.send(&pb.FromCore{State: &pb.State{Revision: m.Revision, Whole: m.Whole, More: true, Tables: m.Tables}})
			m.Whole, m.Tables, size = false, nil, 0
		}
	}
	for _, c := range changes {
		for _, r := range c.Upserts {
			turn(r.Size() + 16)
			t := tableOf(m, c.Table)
			t.Upserts = append(t.Upserts, r)
		}
		for _, key := range c.Deletes {
			turn(len(key) + 8)
			t := tableOf(m, c.Table)
			t.Deletes = append(t.Deletes, key)
		}
	}
	h.send(&pb.FromCore{State: m})
	return number
}

func tableOf(m *pb.State, name string) *pb.TableRows {
	i := slices.IndexFunc(m.Tables, func(t *pb.TableRows) bool { return t.Table == name })
	if i >= 0 {
		return m.Tables[i]
	}
	t := &pb.TableRows{Table: name}
	m.Tables = append(m.Tables, t)
	return t
}

// WaitDone waits for Done of a revision, if the plugin is one that says it.
func (h *Harness) WaitDone(revision uint64) {
	h.t.Helper()
	r := h.Ready()
	if r.Kind.Generates() || r.Derives {
		h.wait("Done", func() bool { return h.done[revision] })
	}
}

// greet sends a source that reads an empty state, unless it was sent one: it may wait for that
// before it is in sync.
func (h *Harness) greet() {
	h.t.Helper()
	h.mu.Lock()
	r, number := h.ready, h.number
	h.mu.Unlock()
	if number == 0 && r != nil && r.Kind.Source() && !r.Derives && len(r.Reads) > 0 {
		h.Send()
	}
}

// WaitSynced waits until the plugin has said Synced.
func (h *Harness) WaitSynced() {
	h.t.Helper()
	h.greet()
	h.wait("Synced", func() bool { return h.synced })
}

// Synced reports whether the plugin has said Synced.
func (h *Harness) Synced() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.synced
}

// Rows returns what the plugin has published in a table, by key.
func (h *Harness) Rows(table string) map[string]*sdk.Row {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.rows[table])
}

// WaitRows waits until what the plugin has published in a table is as wanted.
func (h *Harness) WaitRows(table string, wanted func(map[string]*sdk.Row) bool) {
	h.t.Helper()
	h.wait("rows of "+table+" as wanted", func() bool { return wanted(h.rows[table]) })
}

// Faults returns the faults of all revisions so far.
func (h *Harness) Faults() []*pb.Fault {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.faults)
}

// WaitLog waits for a line in the plugin's log of which holds is true.
func (h *Harness) WaitLog(holds func(level sdk.Level, text string, fields map[string]string) bool) {
	h.t.Helper()
	h.wait("log line", func() bool {
		return slices.ContainsFunc(h.logs, func(l *pb.Log) bool { return holds(l.Level, l.Text, l.Fields) })
	})
}
