package incr

import (
	"iter"
	"sync"
	"sync/atomic"
)

// enoughToShare is from how many nodes on helpers are worth their while.
const enoughToShare = 32

// updateAll updates nodes for the top of t's stack; many of them with helpers.
func (g *Graph) updateAll(t *task, nodes iter.Seq[id]) {
	var due []id
	for n := range nodes {
		if !g.upToDate(n) || g.nodes.at(n).is(inCycle) {
			due = append(due, n)
		}
	}
	if helpers := g.workers - g.helping; helpers > 1 && len(due) >= g.enough {
		g.help(t, due, helpers)
		return
	}
	for _, n := range due {
		if g.update(t, n); t.poison() != nil {
			return
		}
	}
}

// help updates nodes with helpers of t, which waits for them.
func (g *Graph) help(t *task, due []id, helpers int) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range helpers {
		h := &task{parent: t}
		t.helpers = append(t.helpers, h)
		all.Go(func() { g.lend(h, due, &next) })
	}
	g.helping += helpers
	g.mu.Unlock()
	all.Wait()
	g.mu.Lock()
	g.helping -= helpers
	t.helpers = nil
}

func (g *Graph) lend(h *task, due []id, next *atomic.Int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := next.Add(1); int(i) <= len(due) && h.parent.poison() == nil; i = next.Add(1) {
		g.update(h, due[i-1])
	}
}
