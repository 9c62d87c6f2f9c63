package incr

import (
	"slices"
	"testing"
)

// checkGraph checks what must be true between waves.
func checkGraph(t *testing.T, g *Graph) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	alive := 0
	for n := range g.nodes.all {
		alive++
		g.checkNode(t, n)
	}
	if alive != g.nodes.live {
		t.Errorf("%d nodes are live, %d counted", alive, g.nodes.live)
	}
	if len(g.flights) > 0 || g.waiters > 0 || len(g.cuts) > 0 {
		t.Errorf("%d flights, %d waiters, %d cuts are left", len(g.flights), g.waiters, len(g.cuts))
	}
}

func (g *Graph) checkNode(t *testing.T, n id) {
	nd := g.nodes.at(n)
	if nd.is(dirty | flying | executing | queued) {
		t.Errorf("%s: flags %b", g.describe(n), nd.flags)
	}
	for _, r := range nd.reads {
		read := g.nodes.at(r)
		if !read.is(live) || !slices.Contains(read.readers, n) {
			t.Errorf("%s reads %s, which doesn't know", g.describe(n), g.describe(r))
		}
		if read.height >= nd.height && !nd.is(inCycle) && !read.is(inCycle) {
			t.Errorf("%s at %d reads %s at %d", g.describe(n), nd.height, g.describe(r), read.height)
		}
	}
	for _, r := range nd.readers {
		if !slices.Contains(g.nodes.at(r).reads, n) {
			t.Errorf("%s is not read by %s any more", g.describe(n), g.describe(r))
		}
	}
	if nd.is(failed) != (g.failures[n].err != nil) {
		t.Errorf("%s: failed, or is not", g.describe(n))
	}
	if !nd.needed() && nd.idle == 0 {
		t.Errorf("%s is not needed and will not go", g.describe(n))
	}
}

// taints reports whether a node stands on a failed one.
func (g *Graph) taints(n id) bool {
	seen := map[id]bool{}
	var visit func(n id) bool
	visit = func(n id) bool {
		if seen[n] {
			return false
		}
		seen[n] = true
		nd := g.nodes.at(n)
		if nd.is(failed) || slices.ContainsFunc(nd.reads, visit) {
			return true
		}
		bad := false
		g.familyOf(n).sources(n, func(s id) { bad = bad || visit(s) })
		if ops, ok := g.familyOf(n).(*operators); ok {
			ops.at(n).holds(func(s id) { bad = bad || visit(s) })
		}
		return bad
	}
	return visit(n)
}

func (g *Graph) liveNodes() []string {
	var out []string
	for n := range g.nodes.all {
		if len(out) < 20 {
			out = append(out, g.describe(n))
		}
	}
	return out
}
