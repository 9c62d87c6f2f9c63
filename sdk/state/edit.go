package state

import (
	"hash/maphash"
	"maps"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

const (
	// fullShard is how many rows a shard may have on average before the table gets more shards.
	fullShard = 128
	maxShards = 1024
)

// edit makes a new table from an old one; it copies a shard at its first change.
type edit struct {
	table *Table
	owned []bool
}

func newEdit(t *Table) *edit {
	e := &edit{table: &Table{seed: t.seed, rows: t.rows}}
	if len(t.shards) == 0 {
		e.table.seed = maphash.MakeSeed()
		e.table.shards = []map[string]*pb.Row{nil}
	} else {
		e.table.shards = append([]map[string]*pb.Row(nil), t.shards...)
	}
	e.owned = make([]bool, len(e.table.shards))
	return e
}

func (e *edit) put(key string, row *pb.Row) {
	s := e.own(key)
	if _, had := s[key]; !had {
		e.table.rows++
	}
	s[key] = row
	if n := len(e.table.shards); e.table.rows > n*fullShard && n < maxShards {
		e.grow(min(n*8, maxShards))
	}
}

func (e *edit) remove(key string) {
	if e.table.Get(key) == nil {
		return
	}
	delete(e.own(key), key)
	e.table.rows--
}

// own returns the shard of a key, to be written.
func (e *edit) own(key string) map[string]*pb.Row {
	i := e.table.shard(key)
	if !e.owned[i] {
		e.owned[i] = true
		if s := e.table.shards[i]; s != nil {
			e.table.shards[i] = maps.Clone(s)
		} else {
			e.table.shards[i] = map[string]*pb.Row{}
		}
	}
	return e.table.shards[i]
}

func (e *edit) grow(n int) {
	old := e.table.shards
	e.table.shards = make([]map[string]*pb.Row, n)
	e.owned = make([]bool, n)
	for _, s := range old {
		for k, r := range s {
			e.own(k)[k] = r
		}
	}
}
