package state

import (
	"slices"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Index finds rows of a table by something else than their key, such as endpoints by host. It
// follows changes: one changed row costs its own work. Apply must not run at once with anything
// else.
type Index struct {
	table string
	terms func(*pb.Row) []string
	// rows by term, sorted; terms by row, for rows that have any.
	rows map[string][]string
	of   map[string][]string
}

// NewIndex makes an index of a table; terms returns what a row is to be found by, in any order.
func NewIndex(table string, terms func(*pb.Row) []string) *Index {
	return &Index{table: table, terms: terms, rows: map[string][]string{}, of: map[string][]string{}}
}

// Apply takes the index to change.State and returns the terms under which rows changed, sorted:
// those that a changed row had or has. The first change must be a whole state.
func (x *Index) Apply(change *Change) []string {
	if change.Before == nil {
		x.rows, x.of = map[string][]string{}, map[string][]string{}
	}
	var touched []string
	table := change.State.Table(x.table)
	for _, key := range change.Keys[x.table] {
		var now []string
		if row := table.Get(key); row != nil {
			now = slices.Clone(x.terms(row))
			slices.Sort(now)
			now = slices.Compact(now)
		}
		touched = append(append(touched, x.of[key]...), now...)
		x.move(key, now)
	}
	slices.Sort(touched)
	return slices.Compact(touched)
}

// Keys returns the keys of the rows that a term finds, sorted. Shared: read only, until the next
// Apply.
func (x *Index) Keys(term string) []string { return x.rows[term] }

func (x *Index) move(key string, now []string) {
	for _, term := range x.of[key] {
		if _, still := slices.BinarySearch(now, term); !still {
			x.drop(term, key)
		}
	}
	for _, term := range now {
		if _, had := slices.BinarySearch(x.of[key], term); !had {
			keys := x.rows[term]
			i, _ := slices.BinarySearch(keys, key)
			x.rows[term] = slices.Insert(keys, i, key)
		}
	}
	if len(now) == 0 {
		delete(x.of, key)
		return
	}
	x.of[key] = now
}

func (x *Index) drop(term, key string) {
	keys := x.rows[term]
	if i, ok := slices.BinarySearch(keys, key); ok {
		keys = slices.Delete(keys, i, i+1)
	}
	if len(keys) == 0 {
		delete(x.rows, term)
		return
	}
	x.rows[term] = keys
}
