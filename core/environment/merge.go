package environment

import (
	"cmp"
	"iter"
	"math"
	"slices"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// ClusterServices is a table whose rows belong to services, as those of Endpoints do: their keys
// begin with the service's.
const ClusterServices = "clusterservices"

func ofService(tableName string) bool { return tableName == Endpoints || tableName == ClusterServices }

// compare orders shards: which comes first is served of equal keys.
func (s *Shard) compare(o *Shard) int {
	return cmp.Or(cmp.Compare(o.Priority, s.Priority), cmp.Compare(s.Order, o.Order))
}

// noRank is that of a service of which the rows of all shards are served.
const noRank = math.MinInt

// rank is the priority below which rows that belong to a service are not served: the highest of a
// shard that has the service and endpoints of it. It costs a look at the shards that have the
// service.
func (e *Environment) rank(service string, sources bool) int {
	if owner := e.owner(service, sources); owner != nil {
		return owner.Priority
	}
	return noRank
}

// owner is the shard that a service's rank is of; nil: there is none.
func (e *Environment) owner(service string, sources bool) *Shard {
	t := e.tables[Services]
	if t == nil || !e.merging.ranked {
		return nil
	}
	for _, o := range t.rows[service] {
		if !o.shard.aside && !(sources && o.shard.Derived) && e.backed[o.shard][service] > 0 {
			return o.shard
		}
	}
	return nil
}

// rankOf is the rank that holds for a row.
func (e *Environment) rankOf(n Name, sources bool) int {
	if !e.merging.ranked || !ofService(n.Table) {
		return noRank
	}
	return e.rank(ServiceOf(n.Key), sources)
}

// pick returns the place of the row that is served among all of a key; -1: none is.
func pick(rows []owned, rank int, sources bool) int {
	for i, o := range rows {
		switch {
		case o.shard.aside || sources && o.shard.Derived:
		case o.shard.Priority < rank:
			return -1
		default:
			return i
		}
	}
	return -1
}

// merging is what has to be known where several shards have a service or a key.
type merging struct {
	// ranked: some shard has a priority, so that services have ranks. Without, nothing but hidden
	// is kept.
	ranked bool
	// members are the keys of the rows that belong to a service, by their table and the service.
	members map[Name]map[string]struct{}
	// before are the ranks that services had when all was settled last, of those that have another
	// since.
	before map[string]int
	// hidden are rows that are not served, rows is how many.
	hidden map[*Shard]map[Name]struct{}
	rows   int
}

func newMerging() merging {
	return merging{members: map[Name]map[string]struct{}{}, before: map[string]int{}, hidden: map[*Shard]map[Name]struct{}{}}
}

func (m *merging) hide(s *Shard, n Name) {
	if m.hidden[s] == nil {
		m.hidden[s] = map[Name]struct{}{}
	}
	was := len(m.hidden[s])
	m.hidden[s][n] = struct{}{}
	m.rows += len(m.hidden[s]) - was
}

func (m *merging) show(s *Shard, n Name) {
	of := m.hidden[s]
	if of == nil {
		return
	}
	was := len(of)
	delete(of, n)
	if m.rows -= was - len(of); len(of) == 0 {
		delete(m.hidden, s)
	}
}

// join and leave keep members.
func (m *merging) join(n Name) {
	if !m.ranked || !ofService(n.Table) {
		return
	}
	of := Name{n.Table, ServiceOf(n.Key)}
	if m.members[of] == nil {
		m.members[of] = map[string]struct{}{}
	}
	m.members[of][n.Key] = struct{}{}
}

func (m *merging) leave(n Name) {
	if !m.ranked || !ofService(n.Table) {
		return
	}
	of := Name{n.Table, ServiceOf(n.Key)}
	if delete(m.members[of], n.Key); len(m.members[of]) == 0 {
		delete(m.members, of)
	}
}

// heed begins to keep ranks with the first shard that has a priority.
func (e *Environment) heed(s *Shard) {
	if s.Priority == 0 || e.merging.ranked {
		return
	}
	e.merging.ranked = true
	for name, t := range e.tables {
		if !ofService(name) {
			continue
		}
		for key := range t.rows {
			e.merging.join(Name{name, key})
		}
	}
}

// account notes which of a key's rows is served, which are hidden, and whether any was.
func (e *Environment) account(n Name, rows []owned, had bool, at int) {
	e.countEndpoints(n, had, at >= 0)
	for i, o := range rows {
		if i == at {
			e.merging.show(o.shard, n)
		} else {
			e.merging.hide(o.shard, n)
		}
	}
}

// shift notes what a service's rank makes visible and hides, if it is another than it was. The row
// that led to it is noted already.
func (e *Environment) shift(service string, by Name, from int, source bool, changes Changes) {
	to := e.rank(service, false)
	if to == from {
		return
	}
	if _, noted := e.merging.before[service]; !noted && e.before != nil {
		e.merging.before[service] = from
	}
	for _, tableName := range [...]string{Endpoints, ClusterServices} {
		for key := range e.merging.members[Name{tableName, service}] {
			n := Name{tableName, key}
			rows := e.tables[tableName].rows[key]
			was, is := pick(rows, from, false), pick(rows, to, false)
			if was == is {
				continue
			}
			e.account(n, rows, was >= 0, is)
			if before := at(rows, was); n != by && !Equal(before, at(rows, is)) {
				changes.add(n, Change{Source: source, Before: before})
			}
		}
	}
}

func at(rows []owned, i int) *pb.Row {
	if i < 0 {
		return nil
	}
	return rows[i].row
}

// rankHad is the rank of a service when all was settled last.
func (e *Environment) rankHad(service string) int {
	if rank, is := e.merging.before[service]; is {
		return rank
	}
	return e.rank(service, false)
}

// Revealed is how many endpoints more are served than when all was settled last, that did not
// change themselves: other shards' went or came.
func (e *Environment) Revealed() (n int) {
	for service, from := range e.merging.before {
		to := e.rank(service, false)
		for key := range e.merging.members[Name{Endpoints, service}] {
			if e.before[Name{Endpoints, key}] == nil {
				rows := e.tables[Endpoints].rows[key]
				n += byBool(pick(rows, to, false) >= 0) - byBool(pick(rows, from, false) >= 0)
			}
		}
	}
	return n
}

// around does something to shards, and returns the keys whose served row changed by that. which
// says of what it concerns; where services have ranks, all that belongs to services is looked at,
// too. It costs a look at all rows.
func (e *Environment) around(which func(Name, []owned) bool, do func()) Changes {
	type was struct {
		Name
		row *pb.Row
	}
	var all []was
	for tableName, t := range e.tables {
		for key, rows := range t.rows {
			n := Name{tableName, key}
			if which(n, rows) || e.merging.ranked && ofService(tableName) {
				all = append(all, was{n, e.Row(n, false)})
			}
		}
	}
	do()
	for _, w := range all {
		t := e.tables[w.Table]
		if rows := t.rows[w.Key]; len(rows) > 1 {
			t.rows[w.Key] = slices.Clone(rows)
			slices.SortStableFunc(t.rows[w.Key], func(a, b owned) int { return a.shard.compare(b.shard) })
		}
	}
	changes := Changes{}
	for _, w := range all {
		rows := e.tables[w.Table].rows[w.Key]
		is := pick(rows, e.rankOf(w.Name, false), false)
		e.account(w.Name, rows, w.row != nil, is)
		if !Equal(w.row, at(rows, is)) {
			changes.add(w.Name, Change{Source: true, Before: w.row})
		}
	}
	return changes
}

// of returns what accepts the keys of which a shard has a row.
func of(s *Shard) func(Name, []owned) bool {
	return func(_ Name, rows []owned) bool {
		return slices.ContainsFunc(rows, func(o owned) bool { return o.shard == s })
	}
}

// Prioritize gives a shard another priority, and returns the keys whose served row changed by that.
// It counts at once.
func (e *Environment) Prioritize(s *Shard, priority int) Changes {
	if s.Priority == priority {
		return nil
	}
	e.heed(&Shard{Priority: 1}) // also where it becomes 0
	return e.around(of(s), func() { s.Priority = priority })
}

// SetAside has none of a shard's rows served, or all again, and returns the keys whose served row
// changed by that. It counts at once. What the shard says meanwhile is kept, and served with the
// rest when it is aside no more.
func (e *Environment) SetAside(s *Shard, aside bool) Changes {
	if s.aside == aside {
		return nil
	}
	return e.around(of(s), func() { s.aside = aside })
}

// Aside reports whether no row of the shard is served.
func (s *Shard) Aside() bool { return s.aside }

// Why a row is hidden.
type Why string

// Reasons, by what in plugins.yaml they are of.
const (
	// Later: a plugin that stands earlier has the same key.
	Later Why = "order"
	// Lower: a plugin of higher priority has the same key, or the service that the row belongs to
	// and endpoints of it.
	Lower Why = "priority"
	// Away: the plugin's source is away for longer than onLoss allows.
	Away Why = "onLoss"
)

// Hidden is a row of a shard that is not served.
type Hidden struct {
	Name
	Why Why
	// By is the shard whose rows are served instead; nil: none.
	By *Shard
}

// Hidden is the number of rows that aren't served because of other rows, or because their source is
// away.
func (e *Environment) Hidden() int { return e.merging.rows }

// HiddenRows is how many rows of a shard are not served.
func (e *Environment) HiddenRows(s *Shard) int { return len(e.merging.hidden[s]) }

// HiddenOf yields the rows of a shard that are not served.
func (e *Environment) HiddenOf(s *Shard) iter.Seq[Hidden] {
	return func(yield func(Hidden) bool) {
		for n := range e.merging.hidden[s] {
			if !yield(e.why(s, n)) {
				return
			}
		}
	}
}

func (e *Environment) why(s *Shard, n Name) Hidden {
	h := Hidden{Name: n, Why: Away}
	if s.aside {
		return h
	}
	rows, rank := e.tables[n.Table].rows[n.Key], e.rankOf(n, false)
	if i := pick(rows, rank, false); i >= 0 {
		h.By = rows[i].shard
	} else {
		h.By = e.owner(ServiceOf(n.Key), false)
	}
	if h.Why = Later; h.By != nil && h.By.Priority > s.Priority {
		h.Why = Lower
	}
	return h
}
