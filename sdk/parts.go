package sdk

import (
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Parts publishes services and endpoints part by part, for registries that are told what has
// changed: a part is what has to be made anew together, mostly one service with its endpoints. It
// keeps what was published last. Its methods are called by one goroutine at a time.
type Parts struct {
	out   Publisher
	parts map[string]tables
	// changed are the rows for the next Publish; nil: the row goes.
	changed tables
}

// tables are rows by table and key.
type tables map[string]map[string]*Row

func (t tables) put(table, key string, r *Row) {
	if t[table] == nil {
		t[table] = map[string]*Row{}
	}
	t[table][key] = r
}

// NewParts returns none, to be published to out.
func NewParts(out Publisher) *Parts {
	return &Parts{out: out, parts: map[string]tables{}, changed: tables{}}
}

// Set makes services and endpoints all that a part has; with none of either it is gone. No row may
// belong to two parts. Nothing is published before Publish. The slices remain the caller's, what
// they point to doesn't.
func (p *Parts) Set(name string, services []*Service, endpoints []*Endpoint) {
	rows := make([]*Row, len(services))
	for i, s := range services {
		rows[i] = ServiceRow(s)
	}
	before, now := p.parts[name], tables{}
	p.set(state.Services, rows, before, now)
	p.set(state.Endpoints, EndpointRows(endpoints...), before, now)
	if p.parts[name] = now; len(now) == 0 {
		delete(p.parts, name)
	}
}

func (p *Parts) set(table string, rows []*Row, before, now tables) {
	for _, r := range rows {
		if old := before[table][r.Key]; old != nil && sameRow(old, r) {
			r = old
		} else {
			p.changed.put(table, r.Key, r)
		}
		now.put(table, r.Key, r)
	}
	for key := range before[table] {
		if now[table][key] == nil {
			p.changed.put(table, key, nil)
		}
	}
}

// Publish publishes what has changed since it was called last. The declaration's Publishes must
// name both tables. It blocks and fails as Publisher's methods do. It doesn't say Synced.
func (p *Parts) Publish() error {
	for _, table := range [...]string{state.Services, state.Endpoints} {
		var upserts []*Row
		var deletes []string
		for key, r := range p.changed[table] {
			if r == nil {
				deletes = append(deletes, key)
			} else {
				upserts = append(upserts, r)
			}
		}
		if len(upserts)+len(deletes) == 0 {
			continue
		}
		if err := p.out.Update(table, upserts, deletes); err != nil {
			return err
		}
		delete(p.changed, table)
	}
	return nil
}
