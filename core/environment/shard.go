package environment

import (
	"iter"
	"slices"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Tables of rows by key: what a shard consists of.
type Tables map[string]map[string]*pb.Row

// Put makes a row part of the tables.
func (t Tables) Put(table string, r *pb.Row) {
	if t[table] == nil {
		t[table] = map[string]*pb.Row{}
	}
	t[table][r.Key] = r
}

// Len is the number of rows.
func (t Tables) Len() (n int) {
	for _, rows := range t {
		n += len(rows)
	}
	return n
}

// Shard returns what a shard consists of, with what waits to be committed.
func (e *Environment) Shard(s *Shard) Tables {
	all := Tables{}
	for name, t := range e.tables {
		for _, rows := range t.rows {
			for _, o := range rows {
				if o.shard == s {
					all.Put(name, o.row)
				}
			}
		}
	}
	for n, shards := range e.pending {
		r, ok := shards[s]
		switch {
		case !ok:
		case r == nil:
			delete(all[n.Table], n.Key)
		default:
			all.Put(n.Table, r)
		}
	}
	return all
}

// Of returns what accepts, for Commit, the rows that a shard wants changed.
func (e *Environment) Of(s *Shard) func(Name) bool {
	return func(n Name) bool {
		_, ok := e.pending[n][s]
		return ok
	}
}

// Beside yields the keys of a table of which another shard has a row.
func (e *Environment) Beside(s *Shard, table string) iter.Seq[string] {
	return func(yield func(string) bool) {
		t := e.tables[table]
		if t == nil {
			return
		}
		for key, rows := range t.rows {
			if slices.ContainsFunc(rows, func(o owned) bool { return o.shard != s }) && !yield(key) {
				return
			}
		}
	}
}

// Reorder gives shards their places, and returns the keys whose served row changed by that. It
// counts at once.
func (e *Environment) Reorder(order map[*Shard]int) Changes {
	several := func(_ Name, rows []owned) bool { return len(rows) > 1 }
	return e.around(several, func() {
		for s, at := range order {
			s.Order = at
		}
	})
}
