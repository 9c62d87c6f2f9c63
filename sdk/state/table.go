package state

import (
	"hash/maphash"
	"iter"
	"maps"
	"slices"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Table is the rows of one table by key. It never changes: the next revision's table shares with it
// all that is equal.
type Table struct {
	// shards are maps by the key's hash; their number is a power of two, so that one change copies
	// a small map.
	shards []map[string]*pb.Row
	seed   maphash.Seed
	rows   int
	// far is where the rows are if they are not here.
	far *far
	// reads are noted under the table's name, if they are there.
	reads recorder
	name  string
}

// Get returns the row of a key, nil where there is none. Rows are shared: read only.
func (t *Table) Get(key string) *pb.Row {
	row := t.get(key)
	if t.reads != nil {
		t.reads.get(t.name, key, row != nil)
	}
	return row
}

func (t *Table) get(key string) *pb.Row {
	if t.far != nil {
		return t.far.get(key)
	}
	if len(t.shards) == 0 {
		return nil
	}
	return t.shards[t.shard(key)][key]
}

// Len returns the number of rows.
func (t *Table) Len() int {
	t.readWhole()
	if t.far != nil {
		return len(t.far.all())
	}
	return t.rows
}

// Keys returns all keys, sorted.
func (t *Table) Keys() []string {
	keys := make([]string, 0, t.rows)
	for _, s := range t.maps() {
		keys = slices.AppendSeq(keys, maps.Keys(s))
	}
	slices.Sort(keys)
	return keys
}

// All yields all rows in no order.
func (t *Table) All() iter.Seq2[string, *pb.Row] {
	return func(yield func(string, *pb.Row) bool) {
		for _, s := range t.maps() {
			for k, r := range s {
				if !yield(k, r) {
					return
				}
			}
		}
	}
}

func (t *Table) readWhole() {
	if t.reads != nil {
		t.reads.all(t.name)
	}
}

func (t *Table) maps() []map[string]*pb.Row {
	t.readWhole()
	if t.far != nil {
		return []map[string]*pb.Row{t.far.all()}
	}
	return t.shards
}

func (t *Table) shard(key string) int {
	if len(t.shards) == 1 {
		return 0
	}
	return int(maphash.String(t.seed, key) & uint64(len(t.shards)-1))
}
