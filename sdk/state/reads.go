package state

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// Reads are the rows that were read of a state, and those that were looked for in vain. Of tables
// that were read whole that alone is noted. The zero value is ready for use.
type Reads struct {
	mu             sync.Mutex
	found, missing map[Name]bool
	whole          map[string]bool
}

// recorder takes what is read: Reads, by a name that modules without generators don't link it with.
type recorder interface {
	get(table, key string, found bool)
	all(table string)
}

// Recorded returns a state as it is, of which reads are noted.
func (s *State) Recorded(in *Reads) *State {
	return &State{revision: s.revision, tables: s.tables, remote: s.remote, reads: in}
}

func (r *Reads) get(table, key string, found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.whole[table]:
	case found:
		note(&r.found, Name{table, key})
	default:
		note(&r.missing, Name{table, key})
	}
}

func (r *Reads) all(table string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.whole[table] {
		return
	}
	note(&r.whole, table)
	of := func(n Name, _ bool) bool { return n.Table == table }
	maps.DeleteFunc(r.found, of)
	maps.DeleteFunc(r.missing, of)
}

func note[K comparable](set *map[K]bool, k K) {
	if *set == nil {
		*set = map[K]bool{}
	}
	(*set)[k] = true
}

// Add adds what was read elsewhere, by nobody any more.
func (r *Reads) Add(other *Reads) {
	for table := range other.whole {
		r.all(table)
	}
	for n := range other.found {
		r.get(n.Table, n.Key, true)
	}
	for n := range other.missing {
		r.get(n.Table, n.Key, false)
	}
}

// Rows returns the rows that were read, in order, and those that were looked for in vain. at has
// the tables that were read whole, as they were then.
func (r *Reads) Rows(at *State) (found, missing []Name) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found = slices.Collect(maps.Keys(r.found))
	for table := range r.whole {
		for _, key := range at.Table(table).Keys() {
			found = append(found, Name{table, key})
		}
	}
	missing = slices.Collect(maps.Keys(r.missing))
	slices.SortFunc(found, compareNames)
	slices.SortFunc(missing, compareNames)
	return found, missing
}

func compareNames(a, b Name) int {
	return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Key, b.Key))
}
