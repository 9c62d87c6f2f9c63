package environment

import (
	"iter"
	"maps"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Unsettled is a row of a shard that was committed and that proxies don't see yet.
type Unsettled struct {
	Name
	Shard *Shard
	// Before is what the shard had when all was settled last, Now what it has.
	Before, Now *pb.Row
}

// Settle says that proxies see what is committed. From the first call on it is kept what shards had
// before.
func (e *Environment) Settle() {
	if e.before == nil || len(e.before) > 0 {
		e.before = map[Name]map[*Shard]*pb.Row{}
	}
	clear(e.merging.before)
}

// remember keeps what a shard has, before it is given another row.
func (e *Environment) remember(s *Shard, n Name, next *pb.Row) {
	if e.before == nil {
		return
	}
	shards := e.before[n]
	first, known := shards[s]
	switch {
	case !known && shards == nil:
		e.before[n] = map[*Shard]*pb.Row{s: e.own(s, n)}
	case !known:
		shards[s] = e.own(s, n)
	case Equal(first, next): // it is as it was
		if delete(shards, s); len(shards) == 0 {
			delete(e.before, n)
		}
	}
}

// HasUnsettled reports whether anything was committed since all was settled last.
func (e *Environment) HasUnsettled() bool { return len(e.before) > 0 }

// Unsettled yields what was committed since all was settled last.
func (e *Environment) Unsettled() iter.Seq[Unsettled] {
	return func(yield func(Unsettled) bool) {
		for n, shards := range e.before {
			for s, r := range shards {
				if !yield(Unsettled{n, s, r, e.own(s, n)}) {
					return
				}
			}
		}
	}
}

// Had reports whether a row of this name was served when all was settled last.
func (e *Environment) Had(n Name) bool {
	rank := noRank
	if e.merging.ranked && ofService(n.Table) {
		rank = e.rankHad(ServiceOf(n.Key))
	}
	shards := e.before[n]
	for s, r := range shards {
		if r != nil && !s.aside && s.Priority >= rank {
			return true
		}
	}
	if t := e.tables[n.Table]; t != nil {
		for _, o := range t.rows[n.Key] {
			if _, changed := shards[o.shard]; !changed && !o.shard.aside && o.shard.Priority >= rank {
				return true
			}
		}
	}
	return false
}

// Hold takes back those of the unsettled rows that accept names, with the next commit, and keeps
// aside what their shards said instead. Rows of which a shard has said more meanwhile are left
// alone, and derived ones: they follow from others. It returns how many rows it took back.
func (e *Environment) Hold(accept func(Unsettled) bool) (rows int) {
	for u := range e.Unsettled() {
		if _, more := e.pending[u.Name][u.Shard]; more || u.Shard.Derived || !accept(u) {
			continue
		}
		if e.held[u.Shard] == nil {
			if e.held == nil {
				e.held = map[*Shard]map[Name]*pb.Row{}
			}
			e.held[u.Shard] = map[Name]*pb.Row{}
		}
		e.held[u.Shard][u.Name] = u.Now
		if e.pending[u.Name] == nil {
			e.pending[u.Name] = map[*Shard]*pb.Row{}
		}
		e.pending[u.Name][u.Shard] = u.Before
		rows++
	}
	return rows
}

// Held yields what is kept aside of a shard, and what it has instead.
func (e *Environment) Held(s *Shard) iter.Seq[Unsettled] {
	return func(yield func(Unsettled) bool) {
		for n, r := range e.held[s] {
			before := e.own(s, n)
			if p, waits := e.pending[n][s]; waits {
				before = p
			}
			if !yield(Unsettled{n, s, before, r}) {
				return
			}
		}
	}
}

// HeldRows is how many rows of a shard are kept aside.
func (e *Environment) HeldRows(s *Shard) int { return len(e.held[s]) }

// Release notes what was kept aside of a shard, for a later commit.
func (e *Environment) Release(s *Shard) {
	rows := e.held[s]
	delete(e.held, s)
	for n, r := range rows {
		e.note(s, n, r)
	}
}

// Drop forgets what was kept aside of a shard.
func (e *Environment) Drop(s *Shard) { delete(e.held, s) }

// said reports whether a shard says again what is kept aside. If it says something else that
// counts, and nothing is kept aside any more.
func (e *Environment) said(s *Shard, n Name, r *pb.Row) bool {
	rows := e.held[s]
	was, held := rows[n]
	if held && !Equal(was, r) {
		if delete(rows, n); len(rows) == 0 {
			delete(e.held, s)
		}
		return false
	}
	return held
}

// count keeps how many rows each shard has of each table, and how many endpoints of each service.
func (e *Environment) count(s *Shard, n Name, had, has bool) {
	if had == has {
		return
	}
	by := 1
	if had {
		by = -1
	}
	if e.counts[s] == nil {
		e.counts[s] = map[string]int{}
	}
	e.counts[s][n.Table] += by
	if n.Table != Endpoints {
		return
	}
	if e.backed[s] == nil {
		e.backed[s] = map[string]int{}
	}
	service := ServiceOf(n.Key)
	if e.backed[s][service] += by; e.backed[s][service] == 0 {
		delete(e.backed[s], service)
	}
}

// WithEndpointsOf is how many services a shard has endpoints of.
func (e *Environment) WithEndpointsOf(s *Shard) int { return len(e.backed[s]) }

// countEndpoints keeps how many endpoints of each service are served.
func (e *Environment) countEndpoints(n Name, had, has bool) {
	if n.Table != Endpoints || had == has {
		return
	}
	service := ServiceOf(n.Key)
	e.served += byBool(has) - byBool(had)
	if has {
		e.endpoints[service]++
	} else if e.endpoints[service]--; e.endpoints[service] == 0 {
		delete(e.endpoints, service)
	}
}

func byBool(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Len is how many rows of a table are served.
func (e *Environment) Len(tableName string) int {
	if tableName == Endpoints {
		return e.served
	}
	if t := e.tables[tableName]; t != nil {
		return len(t.rows)
	}
	return 0
}

// LenOf returns how many rows a shard has, by table.
func (e *Environment) LenOf(s *Shard) map[string]int { return maps.Clone(e.counts[s]) }

// EndpointsOf is how many endpoints a service has, and WithEndpoints how many services have any.
func (e *Environment) EndpointsOf(service string) int { return e.endpoints[service] }

// WithEndpoints is how many services have endpoints.
func (e *Environment) WithEndpoints() int { return len(e.endpoints) }
