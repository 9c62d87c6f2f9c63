package sdk

import (
	"bytes"

	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// List publishes whole lists, for registries that read all of their source each time: it finds out
// what was added, changed and removed since the list before. Those that are told what has changed
// use Parts. It keeps what it published last. Its methods are called by one goroutine at a time.
type List struct {
	out    Publisher
	tables map[string]map[string]*Row
	synced bool
}

// NewList returns a list with nothing in it that publishes to out.
func NewList(out Publisher) *List { return &List{out: out, tables: map[string]map[string]*Row{}} }

// Set makes services and endpoints all that there are, and says Synced the first time. The
// declaration's Publishes must name both tables. It blocks and fails as Publisher's methods do; the
// slices remain the caller's, what they point to doesn't.
func (l *List) Set(services []*Service, endpoints []*Endpoint) error {
	rows := make([]*Row, len(services))
	for i, s := range services {
		rows[i] = ServiceRow(s)
	}
	if err := l.SetRows(state.Services, rows); err != nil {
		return err
	}
	if err := l.SetRows(state.Endpoints, EndpointRows(endpoints...)); err != nil || l.synced {
		return err
	}
	l.synced = true
	return l.out.Synced()
}

// SetRows makes rows all that there are in one table. It doesn't say Synced.
func (l *List) SetRows(table string, rows []*Row) error {
	before, now := l.tables[table], make(map[string]*Row, len(rows))
	var upserts []*Row
	for _, r := range rows {
		now[r.Key] = r
		if old := before[r.Key]; old == nil || !sameRow(old, r) {
			upserts = append(upserts, r)
		}
	}
	var deletes []string
	for key := range before {
		if now[key] == nil {
			deletes = append(deletes, key)
		}
	}
	if len(upserts)+len(deletes) == 0 {
		return nil
	}
	if err := l.out.Update(table, upserts, deletes); err != nil {
		return err
	}
	l.tables[table] = now
	return nil
}

func sameRow(a, b *Row) bool {
	return bytes.Equal(a.AppendTo(nil), b.AppendTo(nil))
}
