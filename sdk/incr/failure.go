package incr

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Absent is what a function returns where its key has no value. It is no failure.
var Absent = errors.New("absent")

// PanicError is the failure of a function that panicked.
type PanicError struct {
	Value any
	Stack []byte
}

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

// Failures lists all functions that are failed now, by name and key.
func (g *Graph) Failures() []Failure {
	g.turn.RLock()
	defer g.turn.RUnlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	list := make([]Failure, 0, len(g.failures))
	for n, err := range g.failures {
		list = append(list, g.failure(n, err))
	}
	slices.SortFunc(list, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(a.Function, b.Function), cmp.Compare(fmt.Sprint(a.Key), fmt.Sprint(b.Key)))
	})
	return list
}

func (g *Graph) failure(n id, err error) Failure {
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
	nd.flags |= failed
	g.failures[n] = err
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
