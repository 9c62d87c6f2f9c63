package state

import (
	"hash/maphash"
	"iter"
	"maps"
	"reflect"
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

// Changed yields the keys whose rows differ from those of an earlier version of the table, with the
// row that is there now; nil: none is. What both versions share is not gone through, so that it
// costs as much as has changed. Without an earlier version all rows differ.
func (t *Table) Changed(since *Table) iter.Seq2[string, *pb.Row] {
	return func(yield func(string, *pb.Row) bool) {
		if since == nil {
			since = &Table{}
		}
		now, before := t.maps(), since.maps()
		if len(now) != len(before) || t.seed != since.seed || t.far != nil || since.far != nil { // they are cut otherwise
			_ = differences(t.All(), since.get, true, yield) && differences(since.All(), t.get, false, yield)
			return
		}
		for i := range now {
			if reflect.ValueOf(now[i]).Pointer() == reflect.ValueOf(before[i]).Pointer() {
				continue
			}
			if !differences(maps.All(now[i]), func(k string) *pb.Row { return before[i][k] }, true, yield) ||
				!differences(maps.All(before[i]), func(k string) *pb.Row { return now[i][k] }, false, yield) {
				return
			}
		}
	}
}

// differences yields the rows that are others elsewhere or, of an earlier version, those that are
// there no more; false: no more are wanted.
func differences(rows iter.Seq2[string, *pb.Row], elsewhere func(string) *pb.Row, now bool, yield func(string, *pb.Row) bool) bool {
	for k, r := range rows {
		is := elsewhere(k)
		switch {
		case now && is != r && !yield(k, r), !now && is == nil && !yield(k, nil):
			return false
		}
	}
	return true
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
