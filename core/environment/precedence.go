package environment

import (
	"cmp"
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

// Precedence says which row is served where several shards have a key or a service, and what is
// hidden by that.
type Precedence struct {
	tables tables
	tally  *Tally
	// ranked: some shard has a priority, so that services have ranks. Without, nothing but hidden
	// is kept.
	ranked bool
	// members are the keys of the rows that belong to a service, by their table and the service.
	members map[Name]map[string]struct{}
	// hidden are rows that are not served, rows is how many.
	hidden map[*Shard]map[Name]struct{}
	rows   int
}

func newPrecedence(rows tables, tally *Tally) *Precedence {
	return &Precedence{tables: rows, tally: tally, members: map[Name]map[string]struct{}{}, hidden: map[*Shard]map[Name]struct{}{}}
}

// rank is the priority below which rows that belong to a service are not served: the highest of a
// shard that has the service and endpoints of it. It costs a look at the shards that have the
// service.
func (p *Precedence) rank(service string, sources bool) int {
	if owner := p.owner(service, sources); owner != nil {
		return owner.Priority
	}
	return noRank
}

// owner is the shard that a service's rank is of; nil: there is none.
func (p *Precedence) owner(service string, sources bool) *Shard {
	t := p.tables[Services]
	if t == nil || !p.ranked {
		return nil
	}
	for _, o := range t.rows[service] {
		if !o.shard.aside && !(sources && o.shard.Derived) && p.tally.backed[o.shard][service] > 0 {
			return o.shard
		}
	}
	return nil
}

// rankOf is the rank that holds for a row.
func (p *Precedence) rankOf(n Name, sources bool) int {
	if !p.ranked || !ofService(n.Table) {
		return noRank
	}
	return p.rank(ServiceOf(n.Key), sources)
}

func (p *Precedence) hide(s *Shard, n Name) {
	if p.hidden[s] == nil {
		p.hidden[s] = map[Name]struct{}{}
	}
	was := len(p.hidden[s])
	p.hidden[s][n] = struct{}{}
	p.rows += len(p.hidden[s]) - was
}

func (p *Precedence) show(s *Shard, n Name) {
	of := p.hidden[s]
	if of == nil {
		return
	}
	was := len(of)
	delete(of, n)
	if p.rows -= was - len(of); len(of) == 0 {
		delete(p.hidden, s)
	}
}

// join and leave keep members.
func (p *Precedence) join(n Name) {
	if !p.ranked || !ofService(n.Table) {
		return
	}
	of := Name{n.Table, ServiceOf(n.Key)}
	if p.members[of] == nil {
		p.members[of] = map[string]struct{}{}
	}
	p.members[of][n.Key] = struct{}{}
}

func (p *Precedence) leave(n Name) {
	if !p.ranked || !ofService(n.Table) {
		return
	}
	of := Name{n.Table, ServiceOf(n.Key)}
	if delete(p.members[of], n.Key); len(p.members[of]) == 0 {
		delete(p.members, of)
	}
}

// heed begins to keep ranks with the first shard that has a priority.
func (p *Precedence) heed(s *Shard) {
	if s.Priority == 0 || p.ranked {
		return
	}
	p.ranked = true
	for name, t := range p.tables {
		if !ofService(name) {
			continue
		}
		for key := range t.rows {
			p.join(Name{name, key})
		}
	}
}

// account notes which of a key's rows is served, which are hidden, and whether any was.
func (p *Precedence) account(n Name, rows []owned, had bool, at int) {
	p.tally.countEndpoints(n, had, at >= 0)
	for i, o := range rows {
		if i == at {
			p.show(o.shard, n)
		} else {
			p.hide(o.shard, n)
		}
	}
}

// shift notes what a service's rank makes visible and hides, and reports whether it is another than
// it was. The row that led to it is noted already.
func (p *Precedence) shift(service string, by Name, from int, source bool, changes Changes) bool {
	to := p.rank(service, false)
	if to == from {
		return false
	}
	for _, tableName := range [...]string{Endpoints, ClusterServices} {
		for key := range p.members[Name{tableName, service}] {
			n := Name{tableName, key}
			rows := p.tables[tableName].rows[key]
			was, is := pick(rows, from, false), pick(rows, to, false)
			if was == is {
				continue
			}
			p.account(n, rows, was >= 0, is)
			if before := at(rows, was); n != by && !Equal(before, at(rows, is)) {
				changes.add(n, Change{Source: source, Before: before})
			}
		}
	}
	return true
}

// around does something to shards, and returns the keys whose served row changed by that. which
// says of what it concerns; where services have ranks, all that belongs to services is looked at,
// too. It costs a look at all rows.
func (p *Precedence) around(which func(Name, []owned) bool, do func()) Changes {
	type was struct {
		Name
		row *pb.Row
	}
	var all []was
	for tableName, t := range p.tables {
		for key, rows := range t.rows {
			n := Name{tableName, key}
			if which(n, rows) || p.ranked && ofService(tableName) {
				all = append(all, was{n, at(rows, pick(rows, p.rankOf(n, false), false))})
			}
		}
	}
	do()
	for _, w := range all {
		t := p.tables[w.Table]
		if rows := t.rows[w.Key]; len(rows) > 1 {
			t.rows[w.Key] = slices.Clone(rows)
			slices.SortStableFunc(t.rows[w.Key], func(a, b owned) int { return a.shard.compare(b.shard) })
		}
	}
	changes := Changes{}
	for _, w := range all {
		rows := p.tables[w.Table].rows[w.Key]
		is := pick(rows, p.rankOf(w.Name, false), false)
		p.account(w.Name, rows, w.row != nil, is)
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
func (p *Precedence) Prioritize(s *Shard, priority int) Changes {
	if s.Priority == priority {
		return nil
	}
	p.heed(&Shard{Priority: 1}) // also where it becomes 0
	return p.around(of(s), func() { s.Priority = priority })
}

// SetAside has none of a shard's rows served, or all again, and returns the keys whose served row
// changed by that. It counts at once. What the shard says meanwhile is kept, and served with the
// rest when it is aside no more.
func (p *Precedence) SetAside(s *Shard, aside bool) Changes {
	if s.aside == aside {
		return nil
	}
	return p.around(of(s), func() { s.aside = aside })
}

// Reorder gives shards their places, and returns the keys whose served row changed by that. It
// counts at once.
func (p *Precedence) Reorder(order map[*Shard]int) Changes {
	several := func(_ Name, rows []owned) bool { return len(rows) > 1 }
	return p.around(several, func() {
		for s, at := range order {
			s.Order = at
		}
	})
}
