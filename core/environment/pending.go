package environment

import (
	"maps"
	"slices"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Pending is what shards say that is not committed yet. What they say again of what is kept aside
// does not count.
type Pending struct {
	tables    tables
	committed *Committed
	unseen    *Unseen
	kept      kept
	spaces    *Spaces
	waits     map[Name]map[*Shard]*pb.Row // nil row: deleted
	// first is the number at the start.
	first uint64
}

func newPending(rows tables, committed *Committed, unseen *Unseen, k kept, spaces *Spaces) *Pending {
	return &Pending{
		tables: rows, committed: committed, unseen: unseen, kept: k, spaces: spaces, waits: map[Name]map[*Shard]*pb.Row{}, first: committed.number,
	}
}

// Update notes changes of a shard for a later commit. Rows equal to what the shard has are no
// change.
func (p *Pending) Update(s *Shard, tableName string, upserts []*pb.Row, deletes []string) {
	for _, r := range upserts {
		r.Shard = s.Name
		p.note(s, Name{tableName, r.Key}, r)
	}
	for _, k := range deletes {
		p.note(s, Name{tableName, k}, nil)
	}
}

func (p *Pending) note(s *Shard, n Name, r *pb.Row) {
	if len(p.kept) > 0 && p.kept.said(s, n, r) {
		return
	}
	if in := p.spaces.pool(s, n); in != nil {
		p.admit(in, s, n, r)
		return
	}
	p.set(s, n, r)
}

// set notes what a shard has of a key from the next commit on.
func (p *Pending) set(s *Shard, n Name, r *pb.Row) {
	have := p.tables.own(s, n)
	if Equal(have, r) {
		if shards := p.waits[n]; shards != nil {
			if delete(shards, s); len(shards) == 0 {
				delete(p.waits, n)
			}
		}
		if have != nil {
			have.Source = r.Source
		}
		return
	}
	p.put(s, n, r)
}

// put has a row of a shard wait for the next commit, whatever there is of it.
func (p *Pending) put(s *Shard, n Name, r *pb.Row) {
	if p.waits[n] == nil {
		p.waits[n] = map[*Shard]*pb.Row{}
	}
	p.waits[n][s] = r
}

// of returns what waits of a shard's row, if anything does.
func (p *Pending) of(s *Shard, n Name) (r *pb.Row, waits bool) {
	r, waits = p.waits[n][s]
	return r, waits
}

// Replace notes that the shard consists of these rows and no others, for a later commit.
func (p *Pending) Replace(s *Shard, tables map[string]map[string]*pb.Row) {
	for name, t := range p.tables {
		for key, rows := range t.rows {
			if tables[name][key] == nil && slices.ContainsFunc(rows, func(o owned) bool { return o.shard == s }) {
				p.note(s, Name{name, key}, nil)
			}
		}
	}
	for n, shards := range p.waits { // uncommitted rows of an earlier session
		if shards[s] != nil && tables[n.Table][n.Key] == nil {
			p.note(s, n, nil)
		}
	}
	for m := range p.spaces.of(s) {
		if tables[m.Table][m.Key] == nil {
			p.note(s, m.Name, nil)
		}
	}
	for _, in := range p.spaces.again(s) {
		p.settle(in)
	}
	for name, rows := range tables {
		p.Update(s, name, slices.Collect(maps.Values(rows)), nil)
	}
}

// Commit makes the noted changes that accept names part of the tables (all if accept is nil), and
// returns the keys whose served row changed. Nothing changed means no new number, unless force says
// so.
func (p *Pending) Commit(force bool, accept func(Name) bool) Changes {
	changes := Changes{}
	any := force
	for n, shards := range p.waits {
		if accept != nil && !accept(n) {
			continue
		}
		p.commit(n, shards, p.committed.number+1, changes)
		delete(p.waits, n)
		any = true
	}
	if any {
		p.committed.advance()
	}
	return changes
}

// commit writes the shards' rows of a key with a commit's number, and keeps what proxies see
// instead.
func (p *Pending) commit(n Name, rows map[*Shard]*pb.Row, number uint64, changes Changes) {
	p.unseen.remember(n, rows)
	if service, rank := p.committed.write(n, rows, number, changes); service != "" {
		p.unseen.rememberRank(service, rank)
	}
}

// Amend makes derived rows part of the tables at the present number, and returns the keys whose
// served row changed.
func (p *Pending) Amend(s *Shard, tables []*pb.TableRows) Changes {
	changes := Changes{}
	for _, t := range tables {
		p.Update(s, t.Table, t.Upserts, t.Deletes)
	}
	for n, shards := range p.waits {
		r, ok := shards[s]
		if !ok {
			continue
		}
		p.commit(n, map[*Shard]*pb.Row{s: r}, p.committed.number, changes)
		if delete(shards, s); len(shards) == 0 {
			delete(p.waits, n)
		}
	}
	return changes
}

// Coming returns the rows of a table as they are served once all that waits is committed, by key.
func (p *Pending) Coming(tableName string) map[string]*pb.Row {
	out := map[string]*pb.Row{}
	for key, row := range p.committed.Rows(tableName, false) {
		out[key] = row
	}
	for n, waits := range p.waits {
		if n.Table != tableName {
			continue
		}
		rows := maps.Clone(waits)
		if t := p.tables[tableName]; t != nil {
			for _, o := range t.rows[n.Key] {
				if _, changes := rows[o.shard]; !changes {
					rows[o.shard] = o.row
				}
			}
		}
		delete(out, n.Key)
		var first *Shard
		for s, row := range rows {
			if row != nil && !s.aside && (first == nil || s.compare(first) < 0) {
				first, out[n.Key] = s, row
			}
		}
	}
	return out
}

// Waits reports whether there is something to commit, of endpoints that may go ahead, and of
// anything else.
func (p *Pending) Waits() (endpoints, rest bool) {
	for n := range p.waits {
		if p.Ahead(n) {
			endpoints = true
		} else {
			rest = true
		}
		if endpoints && rest {
			return
		}
	}
	return
}

// Instances reports whether endpoints of services that are there wait, and workloads, and nothing
// else.
func (p *Pending) Instances() bool {
	endpoints := false
	for n := range p.waits {
		switch {
		case n.Table == Workloads:
		case p.Ahead(n):
			endpoints = true
		default:
			return false
		}
	}
	return endpoints
}

// Ahead reports whether a row may be committed ahead of others: an endpoint whose service is in the
// tables, and stays as it is.
func (p *Pending) Ahead(n Name) bool {
	if n.Table != Endpoints {
		return false
	}
	service := Name{Services, ServiceOf(n.Key)}
	return p.waits[service] == nil && p.committed.Row(service, false) != nil
}

// Of returns what accepts, for Commit, the rows that a shard wants changed.
func (p *Pending) Of(s *Shard) func(Name) bool {
	return func(n Name) bool {
		_, waits := p.of(s, n)
		return waits
	}
}

// Shard returns what a shard consists of, with what waits to be committed, and what is refused
// because a namespace is full.
func (p *Pending) Shard(s *Shard) Tables {
	all := Tables{}
	for name, t := range p.tables {
		for _, rows := range t.rows {
			for _, o := range rows {
				if o.shard == s {
					all.Put(name, o.row)
				}
			}
		}
	}
	for n, shards := range p.waits {
		r, ok := shards[s]
		switch {
		case !ok:
		case r == nil:
			delete(all[n.Table], n.Key)
		default:
			all.Put(n.Table, r)
		}
	}
	for m := range p.spaces.of(s) {
		all.Put(m.Table, m.waits)
	}
	return all
}
