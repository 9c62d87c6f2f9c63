// Package environment holds the tables: rows in shards, each written by one plugin, and what is to
// be committed next. It has no clock and no goroutine, and is not safe for concurrent use.
package environment

import (
	"bytes"
	"maps"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Endpoints and Services are the tables whose rows may go out ahead of others, Workloads that of
// what comes and goes with endpoints.
const (
	Endpoints = "endpoints"
	Services  = "services"
	Workloads = "workloads"
)

// faults is the table of what is wrong with files, whose names its keys begin with.
const faults = "faults"

// Shard is the part of the tables that one plugin owns.
type Shard struct {
	Name string
	// Order is the owner's place in plugins.yaml: of equal keys in several shards of one priority
	// the row of the first shard is served.
	Order int
	// Priority goes before Order: of equal keys the row of the highest is served, and of a
	// service's endpoints those of the highest that has any. Once the shard has rows,
	// Precedence.Prioritize changes it.
	Priority int
	// Derived rows are a function of other rows.
	Derived bool

	// aside: none of its rows is served.
	aside bool
}

// Aside reports whether no row of the shard is served.
func (s *Shard) Aside() bool { return s.aside }

// Name names a row.
type Name struct{ Table, Key string }

// Environment is all tables at the newest commit, and what has changed since. Each of its parts
// knows those that stand before it alone.
type Environment struct {
	Tally      *Tally
	Precedence *Precedence
	Committed  *Committed
	Unseen     *Unseen
	Pending    *Pending
	Held       *Held
	Spaces     *Spaces
}

// New returns an empty environment at revision number 0.
func New() *Environment { return After(0) }

// After returns an empty environment at a revision number.
func After(number uint64) *Environment { return Bounded(number, Bounds{}) }

// Bounded returns an empty environment at a revision number, in which namespaces have bounds.
func Bounded(number uint64, bounds Bounds) *Environment {
	rows, aside, tally, spaces := tables{}, kept{}, newTally(), newSpaces(bounds)
	precedence := newPrecedence(rows, tally)
	committed, unseen := newCommitted(number, rows, precedence, tally), newUnseen(rows, precedence)
	pending := newPending(rows, committed, unseen, aside, spaces)
	return &Environment{
		Tally: tally, Precedence: precedence, Committed: committed, Unseen: unseen, Pending: pending,
		Held: newHeld(rows, unseen, pending, aside), Spaces: spaces,
	}
}

// Equal reports whether two rows mean the same: where they came from doesn't count.
func Equal(a, b *pb.Row) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Created == b.Created && a.Undated == b.Undated && bytes.Equal(a.Payload, b.Payload) &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}
