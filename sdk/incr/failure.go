package incr

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Absent is what a function returns where its key has no value. It is no failure.
var Absent = errors.New("absent")

// PanicError is the failure of a function that panicked.
type PanicError struct {
	Value any
	Stack []byte
}

// Error implements error.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Failure is a function that returned an error or panicked when it ran last. It keeps its last good
// value, if it had one.
type Failure struct {
	// Function is its name, Key its key; nil for a function that says where elements belong, in an
	// index or a join.
	Function string
	Key      any
	Err      error
	// Read are rows that it was made from, as Explain gives them.
	Read []Row
	// Stale says that there is a last good value.
	Stale bool
}

// failureRows bounds the rows that a Failure names.
const failureRows = 16

// failing is a function that is failed now, since some wave.
type failing struct {
	err   error
	since uint32
}

// Failures lists all functions that are failed now, and that somebody needs, by name and key.
func (g *Graph) Failures() []Failure {
	list, _ := g.FirstFailures(math.MaxInt)
	return list
}

// FirstFailures lists functions that are failed now, and that somebody needs, by name and key:
// those that failed first, limit of them at most. others are the errors of all others, in no order:
// to list these costs little.
func (g *Graph) FirstFailures(limit int) (list []Failure, others []error) {
	g.turn.RLock()
	defer g.turn.RUnlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	type node struct {
		id id
		failing
	}
	all := make([]node, 0, len(g.failures))
	for n, f := range g.failures {
		if g.nodes.at(n).needed() {
			all = append(all, node{n, f})
		}
	}
	if len(all) > limit {
		slices.SortFunc(all, func(a, b node) int { return cmp.Or(cmp.Compare(a.since, b.since), cmp.Compare(a.id, b.id)) })
		for _, n := range all[limit:] {
			others = append(others, n.err)
		}
		all = all[:limit]
	}
	type named struct {
		Failure
		key string
	}
	first := make([]named, len(all))
	for i, n := range all {
		f := failure(g, n.id, n.err)
		first[i] = named{f, fmt.Sprint(f.Key)}
	}
	slices.SortFunc(first, func(a, b named) int { return cmp.Or(cmp.Compare(a.Function, b.Function), cmp.Compare(a.key, b.key)) })
	list = make([]Failure, len(first))
	for i, f := range first {
		list[i] = f.Failure
	}
	return list, others
}

func failure(g *Graph, n id, err error) Failure {
	f := g.familyOf(n)
	failure := Failure{Function: f.name(), Key: f.keyOf(n), Err: err, Stale: g.nodes.at(n).is(present)}
	if ops, ok := f.(*operators); ok {
		failure.Function, failure.Key = ops.at(n).name(), nil
		return failure
	}
	failure.Read = g.explain(n, failureRows).Rows
	return failure
}

func (g *Graph) fail(n id, err error) {
	nd := g.nodes.at(n)
	since := g.wave
	if before, ok := g.failures[n]; ok {
		since = before.since
	}
	nd.flags |= failed
	g.failures[n] = failing{err, since}
	if _, ok := errors.AsType[*CycleError](err); ok {
		nd.flags |= inCycle
		g.cyclic[n] = struct{}{}
	}
}

func (g *Graph) recover(n id) {
	nd := g.nodes.at(n)
	if nd.is(failed) {
		nd.flags &^= failed
		delete(g.failures, n)
	}
}
