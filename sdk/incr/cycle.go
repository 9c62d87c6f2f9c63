package incr

import (
	"fmt"
	"slices"
	"strings"
)

// task is one sequential piece of work: a stack of nodes that need each other, and what the top one
// waits for: the node of another task, or helpers.
type task struct {
	stack   []frame
	waiting id
	helpers []*task
	// parent is whom a helper helps.
	parent *task
}

type frame struct {
	node   id
	poison error
}

// poison returns why the node at the top of the stack must fail.
func (t *task) poison() error {
	if len(t.stack) == 0 {
		return nil
	}
	return t.stack[len(t.stack)-1].poison
}

// above returns the stack from n upwards, nil if n isn't in it.
func (t *task) above(n id) []frame {
	i := slices.IndexFunc(t.stack, func(f frame) bool { return f.node == n })
	if i < 0 {
		return nil
	}
	return t.stack[i:]
}

// CycleError is the failure of functions that need each other's results.
type CycleError struct {
	// Path names the nodes as `name(key)`, each of which read the next; the last read the first.
	Path []string
}

// Error implements error.
func (e *CycleError) Error() string {
	return "cycle: " + strings.Join(append(e.Path[:len(e.Path):len(e.Path)], e.Path[0]), " → ")
}

// poisonCycle follows who waits for whom from n on. If that leads back to t, all nodes on the way
// are poisoned.
func (g *Graph) poisonCycle(t *task, n id) bool {
	owner := g.flights[n]
	cycle := g.chain(owner, len(owner.stack)-len(owner.above(n)), t, map[*task]bool{})
	if cycle == nil {
		return false
	}
	g.poison(cycle)
	return true
}

// chain returns the stretches of stacks that lead from a frame of a task to t, nil if the task
// doesn't wait for t.
func (g *Graph) chain(from *task, frame int, t *task, seen map[*task]bool) []stretch {
	if seen[from] {
		return nil
	}
	seen[from] = true
	here := []stretch{{from, frame}}
	if down, ok := from.downTo(t); ok {
		return append(here, down...)
	}
	if owner := g.flights[from.waiting]; owner != nil {
		if rest := g.chain(owner, len(owner.stack)-len(owner.above(from.waiting)), t, seen); rest != nil {
			return append(here, rest...)
		}
	}
	for _, h := range from.helpers {
		if rest := g.chain(h, 0, t, seen); rest != nil {
			return append(here, rest...)
		}
	}
	return nil
}

// downTo returns the whole stacks of those who help t, from its helper's helper's … down to other,
// if that is one of them or t itself.
func (t *task) downTo(other *task) (down []stretch, ok bool) {
	for ; other != nil; other = other.parent {
		if other == t {
			slices.Reverse(down)
			return down, true
		}
		down = append(down, stretch{other, 0})
	}
	return nil, false
}

// stretch is the part of a task's stack from an index on.
type stretch struct {
	task *task
	from int
}

func (g *Graph) poison(cycle []stretch) {
	err := &CycleError{}
	for _, part := range cycle {
		for _, f := range part.task.stack[part.from:] {
			if _, isOp := g.familyOf(f.node).(*operators); !isOp || len(cycle) == 1 {
				err.Path = append(err.Path, g.describe(f.node))
			}
		}
	}
	for _, part := range cycle {
		for i := part.from; i < len(part.task.stack); i++ {
			part.task.stack[i].poison = err
		}
	}
	g.done.Broadcast()
}

// retryCycles makes nodes that were in a cycle as if they had never run, but for their last good
// values. They run first: their heights mean nothing, and whoever they read must be looked at.
func (g *Graph) retryCycles() {
	for n := range g.cyclic {
		g.link(n, nil)
		nd := g.nodes.at(n)
		nd.flags &^= inCycle | computed
		nd.height = 0
	}
	for n := range g.cyclic {
		g.mark(n)
	}
	clear(g.cyclic)
}

// poisonKnownCycle looks at what a node needs that failed in a cycle in this wave: where that is a
// node of t's stack, it is in a cycle too.
func (g *Graph) poisonKnownCycle(t *task, n id) {
	seen := map[id]bool{}
	var visit func(n id) int
	visit = func(n id) int {
		if i := slices.IndexFunc(t.stack, func(f frame) bool { return f.node == n }); i >= 0 {
			return i
		}
		if seen[n] || !g.nodes.at(n).is(inCycle) {
			return -1
		}
		seen[n] = true
		found := -1
		g.needs(n, func(r id) {
			if found < 0 {
				found = visit(r)
			}
		})
		return found
	}
	if from := visit(n); from >= 0 {
		g.poison([]stretch{{t, from}})
	}
}

// needs yields what n depends on.
func (g *Graph) needs(n id, yield func(id)) {
	for _, r := range g.nodes.at(n).reads {
		yield(r)
	}
	if ops, ok := g.familyOf(n).(*operators); ok {
		ops.at(n).sources(yield)
	}
}

// describe names a node for people.
func (g *Graph) describe(n id) string {
	f := g.familyOf(n)
	if _, ok := f.(*operators); ok {
		return fmt.Sprint(f.keyOf(n))
	}
	return fmt.Sprintf("%s(%v)", f.name(), f.keyOf(n))
}
