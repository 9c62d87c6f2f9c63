package incr

// resting is a node that nothing needed at a wave.
type resting struct {
	node  id
	since uint32
}

// rest notes that nothing needs n for now.
func (g *Graph) rest(n id) {
	nd := g.nodes.at(n)
	nd.idle = g.wave + 1
	g.idle = append(g.idle, resting{n, nd.idle})
}

// overdue says that nothing needed a node in this wave and the one before.
func overdue(n *node, wave uint32) bool { return n.idle+2 <= wave+1 }

func (g *Graph) pin(n id) {
	nd := g.nodes.at(n)
	nd.pins++
	nd.idle = 0
}

func (g *Graph) unpin(n id) {
	nd := g.nodes.at(n)
	nd.pins--
	if !nd.needed() {
		g.rest(n)
	}
}

// release lets go of what nothing has needed for two waves.
func (g *Graph) release() {
	for _, n := range g.cut() {
		g.rest(n)
	}
	g.releaseCycles()
	var due []id
	kept := g.idle[:0]
	for _, r := range g.idle {
		nd := g.nodes.at(r.node)
		switch {
		case nd.idle != r.since:
		case !overdue(nd, g.wave):
			kept = append(kept, r)
		default:
			due = append(due, r.node)
		}
	}
	g.idle = kept
	g.free(due)
}

// free lets go of nodes and of all that they alone needed.
func (g *Graph) free(due []id) {
	resting := len(g.idle)
	for len(due) > 0 {
		for _, n := range due {
			g.freeOne(n)
		}
		due = g.cut()
		for _, r := range g.idle[resting:] {
			due = append(due, r.node)
		}
		g.idle = g.idle[:resting]
	}
}

func (g *Graph) freeOne(n id) {
	nd := g.nodes.at(n)
	if !nd.is(live) || nd.needed() {
		return
	}
	for _, r := range nd.reads {
		g.cuts = append(g.cuts, edge{r, n})
	}
	g.familyOf(n).release(n)
	delete(g.failures, n)
	delete(g.cyclic, n)
	delete(g.lost, n)
	g.nodes.drop(n)
}

// Trim gives back the memory of what is gone, and reports whether there was any. Without it room is
// kept for what comes next.
func (g *Graph) Trim() bool {
	g.turn.Lock()
	defer g.turn.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	gone := g.nodes.trim()
	for _, f := range g.families {
		gone += f.trim()
	}
	g.idle, g.cuts = append([]resting(nil), g.idle...), nil
	return gone > 0
}
