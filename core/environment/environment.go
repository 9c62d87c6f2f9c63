// Package environment holds the tables: rows in shards, each written by one plugin, and what is to
// be committed next. It has no clock and no goroutine, and is not safe for concurrent use.
package environment

import (
	"bytes"
	"iter"
	"maps"
	"slices"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Endpoints and Services are the tables whose rows may go out ahead of others.
const (
	Endpoints = "endpoints"
	Services  = "services"
)

// Shard is the part of the tables that one plugin owns.
type Shard struct {
	Name string
	// Order is the owner's place in plugins.yaml: of equal keys in several shards of one priority
	// the row of the first shard is served.
	Order int
	// Priority goes before Order: of equal keys the row of the highest is served, and of a
	// service's endpoints those of the highest that has any. Once the shard has rows, Prioritize
	// changes it.
	Priority int
	// Derived rows are a function of other rows.
	Derived bool

	// aside: none of its rows is served.
	aside bool
}

// Name names a row.
type Name struct{ Table, Key string }

// Environment is all tables at the newest commit, and what has changed since.
type Environment struct {
	number  uint64
	tables  map[string]*table
	pending map[Name]map[*Shard]*pb.Row // nil row: deleted
	merging merging
	// before is what shards had of rows that proxies don't see as they are now; nil: nobody asks.
	// held is what shards said that is kept aside.
	before map[Name]map[*Shard]*pb.Row
	held   map[*Shard]map[Name]*pb.Row
	// counts are of shards' rows by table, backed of shards' endpoints by service, endpoints of
	// those that are served by service, and served their sum.
	counts    map[*Shard]map[string]int
	backed    map[*Shard]map[string]int
	endpoints map[string]int
	served    int
}

// table holds, for each key, the rows of all shards in order; the first one is served.
type table struct {
	rows map[string][]owned
}

type owned struct {
	shard *Shard
	row   *pb.Row
	// number is that of the commit since which it is as it is.
	number uint64
}

// New returns an empty environment at revision number 0.
func New() *Environment {
	return &Environment{
		tables: map[string]*table{}, pending: map[Name]map[*Shard]*pb.Row{}, counts: map[*Shard]map[string]int{}, backed: map[*Shard]map[string]int{},
		endpoints: map[string]int{}, merging: newMerging(),
	}
}

// After returns an empty environment at a revision number.
func After(number uint64) *Environment {
	e := New()
	e.number = number
	return e
}

// Number is the number of the newest commit.
func (e *Environment) Number() uint64 { return e.number }

// Equal says whether two rows mean the same: where they came from doesn't count.
func Equal(a, b *pb.Row) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Created == b.Created && bytes.Equal(a.Payload, b.Payload) && maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}

// Update notes changes of a shard for a later commit. Rows equal to what the shard has are no
// change.
func (e *Environment) Update(s *Shard, tableName string, upserts []*pb.Row, deletes []string) {
	for _, r := range upserts {
		r.Shard = s.Name
		e.note(s, Name{tableName, r.Key}, r)
	}
	for _, k := range deletes {
		e.note(s, Name{tableName, k}, nil)
	}
}

func (e *Environment) note(s *Shard, n Name, r *pb.Row) {
	if len(e.held) > 0 && e.said(s, n, r) {
		return
	}
	have := e.own(s, n)
	if Equal(have, r) {
		if p := e.pending[n]; p != nil {
			delete(p, s)
			if len(p) == 0 {
				delete(e.pending, n)
			}
		}
		if have != nil {
			have.Source = r.Source
		}
		return
	}
	if e.pending[n] == nil {
		e.pending[n] = map[*Shard]*pb.Row{}
	}
	e.pending[n][s] = r
}

// own returns the committed row of one shard.
func (e *Environment) own(s *Shard, n Name) *pb.Row {
	if t := e.tables[n.Table]; t != nil {
		for _, o := range t.rows[n.Key] {
			if o.shard == s {
				return o.row
			}
		}
	}
	return nil
}

// Replace notes that the shard consists of these rows and no others, for a later commit.
func (e *Environment) Replace(s *Shard, tables map[string]map[string]*pb.Row) {
	for name, t := range e.tables {
		for key, rows := range t.rows {
			if tables[name][key] == nil && slices.ContainsFunc(rows, func(o owned) bool { return o.shard == s }) {
				e.note(s, Name{name, key}, nil)
			}
		}
	}
	for n, shards := range e.pending { // uncommitted rows of an earlier session
		if shards[s] != nil {
			e.note(s, n, nil) // what comes again is noted below
		}
	}
	for name, rows := range tables {
		e.Update(s, name, slices.Collect(maps.Values(rows)), nil)
	}
}

// Commit makes the noted changes that accept names part of the tables (all if accept is nil), and
// returns the keys whose served row changed. Nothing changed means no new number, unless force says
// so.
func (e *Environment) Commit(force bool, accept func(Name) bool) Changes {
	changes := Changes{}
	any := force
	for n, shards := range e.pending {
		if accept != nil && !accept(n) {
			continue
		}
		e.settle(n, shards, e.number+1, changes)
		delete(e.pending, n)
		any = true
	}
	if any {
		e.number++
	}
	return changes
}

// Amend makes derived rows part of the tables at the present number, and returns the keys whose
// served row changed.
func (e *Environment) Amend(s *Shard, tables []*pb.TableRows) Changes {
	changes := Changes{}
	for _, t := range tables {
		e.Update(s, t.Table, t.Upserts, t.Deletes)
	}
	for n, shards := range e.pending {
		r, ok := shards[s]
		if !ok {
			continue
		}
		e.settle(n, map[*Shard]*pb.Row{s: r}, e.number, changes)
		if delete(shards, s); len(shards) == 0 {
			delete(e.pending, n)
		}
	}
	return changes
}

// settle writes the shards' rows of a key with a commit's number, and notes which served rows
// changed by that: the key's, and others of its service, if it is served by other shards now.
func (e *Environment) settle(n Name, rows map[*Shard]*pb.Row, number uint64, changes Changes) {
	source := false
	for s := range rows {
		source = source || !s.Derived
		e.heed(s)
	}
	before, service, rank := e.Row(n, false), "", noRank
	if e.merging.ranked && (n.Table == Services || ofService(n.Table)) {
		service = ServiceOf(n.Key)
		rank = e.rank(service, false)
	}
	for s, r := range rows {
		e.remember(s, n, r)
		e.put(owned{s, r, number}, n, rank)
	}
	if !Equal(before, e.Row(n, false)) {
		changes.add(n, Change{Source: source, Before: before})
	}
	if service != "" {
		e.shift(service, n, rank, source, changes)
	}
}

// put writes what a shard has of a key; no row: nothing. rank is that of the key's service before.
func (e *Environment) put(has owned, n Name, rank int) {
	s, r := has.shard, has.row
	t := e.tables[n.Table]
	if t == nil {
		t = &table{rows: map[string][]owned{}}
		e.tables[n.Table] = t
	}
	if !ofService(n.Table) {
		rank = noRank
	}
	rows := t.rows[n.Key]
	out := make([]owned, 0, len(rows)+1)
	for _, o := range rows {
		if o.shard != s {
			out = append(out, o)
		}
	}
	e.count(s, n, len(out) < len(rows), r != nil)
	had := pick(rows, rank, false)
	if r != nil {
		i, _ := slices.BinarySearchFunc(out, s, func(o owned, s *Shard) int { return o.shard.compare(s) })
		out = slices.Insert(out, i, has)
	} else {
		e.merging.show(s, n)
	}
	e.account(n, out, had >= 0, pick(out, rank, false))
	if len(out) == 0 {
		delete(t.rows, n.Key)
		e.merging.leave(n)
	} else {
		t.rows[n.Key] = out
		e.merging.join(n)
	}
}

// Row returns the served row of a key, nil where there is none. sources leaves derived rows out.
func (e *Environment) Row(n Name, sources bool) *pb.Row {
	t := e.tables[n.Table]
	if t == nil {
		return nil
	}
	rows := t.rows[n.Key]
	if i := pick(rows, e.rankOf(n, sources), sources); i >= 0 {
		return rows[i].row
	}
	return nil
}

// Has says whether a table has served rows. sources leaves derived rows out.
func (e *Environment) Has(tableName string, sources bool) bool {
	for range e.Rows(tableName, sources) {
		return true
	}
	return false
}

// Rows yields the served rows of a table in no order.
func (e *Environment) Rows(tableName string, sources bool) iter.Seq2[string, *pb.Row] {
	return func(yield func(string, *pb.Row) bool) {
		t := e.tables[tableName]
		if t == nil {
			return
		}
		for key, rows := range t.rows {
			i := pick(rows, e.rankOf(Name{tableName, key}, sources), sources)
			if i >= 0 && !yield(key, rows[i].row) {
				return
			}
		}
	}
}

// Coming returns the rows of a table as they are served once all that waits is committed, by key.
func (e *Environment) Coming(tableName string) map[string]*pb.Row {
	out := map[string]*pb.Row{}
	for key, row := range e.Rows(tableName, false) {
		out[key] = row
	}
	for n, waits := range e.pending {
		if n.Table != tableName {
			continue
		}
		rows := maps.Clone(waits)
		if t := e.tables[tableName]; t != nil {
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

// Tables returns the names of all tables that have had rows, sorted.
func (e *Environment) Tables() []string { return slices.Sorted(maps.Keys(e.tables)) }

// Counts returns how many rows each shard has in each table, hidden ones too.
func (e *Environment) Counts() map[string]map[string]int {
	out := make(map[string]map[string]int, len(e.tables))
	for name, t := range e.tables {
		out[name] = map[string]int{}
		for _, rows := range t.rows {
			for _, o := range rows {
				out[name][o.shard.Name]++
			}
		}
	}
	return out
}

// Pending says whether there is something to commit, of endpoints that may go ahead, and of
// anything else.
func (e *Environment) Pending() (endpoints, rest bool) {
	for n := range e.pending {
		if e.Ahead(n) {
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

// Ahead says whether a row may be committed ahead of others: an endpoint whose service is in the
// tables, and stays as it is.
func (e *Environment) Ahead(n Name) bool {
	if n.Table != Endpoints {
		return false
	}
	service := Name{Services, ServiceOf(n.Key)}
	return e.pending[service] == nil && e.Row(service, false) != nil
}
