package environment

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Spaces are the namespaces, what their rows cost, and which rows are refused for that. The oldest
// rows of a namespace are kept. What is refused waits, and is let in, oldest first, as soon as
// there is room; of a row that grows too much the version that was let in stays.
type Spaces struct {
	bounds   Bounds
	policies map[string]bool
	free     map[string]bool
	// own is the shard of what is served instead of policies that are refused.
	own   *Shard
	pools map[space]*pool
	// changes counts what was refused and let in.
	changes uint64
}

// space is the room of a namespace's policies, or of its other rows.
type space struct {
	namespace string
	policies  bool
}

// Own is the name of the shard of rows that are served instead of refused ones.
const Own = "coxswain"

func newSpaces(b Bounds) *Spaces {
	s := &Spaces{bounds: b, own: &Shard{Name: Own, Order: -1, Derived: true}, pools: map[space]*pool{}, policies: map[string]bool{}, free: map[string]bool{}}
	for _, table := range b.Policies {
		s.policies[table] = true
	}
	for _, namespace := range b.Free {
		s.free[namespace] = true
	}
	return s
}

// pool returns the room that a row needs; nil: it has no bound.
func (ss *Spaces) pool(s *Shard, n Name) *pool {
	if ss.bounds.Bytes == 0 || s == ss.own || n.Table == faults {
		return nil
	}
	namespace := NamespaceOf(n.Key)
	if namespace == "" || ss.free[namespace] {
		return nil
	}
	of := space{namespace, ss.policies[n.Table]}
	p := ss.pools[of]
	if p == nil {
		p = &pool{namespace: namespace, policies: of.policies, most: ss.bounds.most(of.policies), room: ss.bounds.waits()}
		ss.pools[of] = p
	}
	return p
}

// tidy forgets a namespace that has no rows.
func (ss *Spaces) tidy(p *pool) {
	p.rest()
	if p.used == 0 && p.members == nil {
		delete(ss.pools, space{p.namespace, p.policies})
	}
}

// Changes counts how often a row was refused, or one that was is so no more.
func (ss *Spaces) Changes() uint64 { return ss.changes }

// Crowded is a namespace of which rows are refused.
type Crowded struct {
	Namespace string
	// Policies: it is rows that forbid something, and what is served instead forbids all; else
	// others.
	Policies bool
	// Used is what the rows cost that are let in, Most what they may, in bytes.
	Used, Most int64
	// Rows is how many rows, or later versions of rows, wait; Forgotten how many more there are
	// that come again only when their plugin says all it has.
	Rows, Forgotten int
}

// Crowded returns the namespaces of which rows are refused, by name.
func (ss *Spaces) Crowded() (all []Crowded) {
	for _, p := range ss.pools {
		if p.crowded() {
			c := Crowded{Namespace: p.namespace, Policies: p.policies, Used: p.used, Most: p.most, Rows: p.queues[oldestWaits].Len()}
			for _, rows := range p.forgotten {
				c.Forgotten += len(rows)
			}
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b Crowded) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(byBool(a.Policies), byBool(b.Policies)))
	})
	return all
}

// RefusedRow is a row of a shard that is refused because its namespace is full.
type RefusedRow struct {
	Name
	Shard *Shard
	// Row is what is refused. Kept: an earlier version of it is let in.
	Row  *pb.Row
	Kept bool
}

// Refused yields the rows that are refused, of a namespace that is Crowded, in no order.
func (ss *Spaces) Refused(namespace string, policies bool) iter.Seq[RefusedRow] {
	return func(yield func(RefusedRow) bool) {
		p := ss.pools[space{namespace, policies}]
		if p == nil {
			return
		}
		for _, m := range p.queues[oldestWaits].members {
			if !yield(RefusedRow{m.Name, m.shard, m.waits, m.cost > 0}) {
				return
			}
		}
	}
}

// of yields the members of a shard of which something waits.
func (ss *Spaces) of(s *Shard) iter.Seq[*member] {
	return func(yield func(*member) bool) {
		for _, p := range slices.Collect(maps.Values(ss.pools)) {
			for _, m := range slices.Clone(p.queues[oldestWaits].members) {
				if m.shard == s && m.waits != nil && !yield(m) {
					return
				}
			}
		}
	}
}

// again notes that a shard says all it has: what was forgotten of it comes again, or is gone.
func (ss *Spaces) again(s *Shard) (emptied []*pool) {
	for _, p := range ss.pools {
		if len(p.forgotten[s]) > 0 {
			delete(p.forgotten, s)
			p.changes++
			emptied = append(emptied, p)
		}
	}
	return emptied
}
