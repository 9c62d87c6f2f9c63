package state

import (
	"iter"
	"maps"
	"slices"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Table is the rows of one table by key. It never changes.
type Table struct {
	rows map[string]*pb.Row
}

// Get returns the row of a key, nil where there is none.
func (t *Table) Get(key string) *pb.Row { return t.rows[key] }

// Len returns the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// Keys returns all keys, sorted.
func (t *Table) Keys() []string { return slices.Sorted(maps.Keys(t.rows)) }

// All yields all rows in no order.
func (t *Table) All() iter.Seq2[string, *pb.Row] { return maps.All(t.rows) }
