package incr

import "slices"

// releaseCycles lets go of failed functions that are needed by each other only. It looks at the
// whole graph while there is a cycle.
func (g *Graph) releaseCycles() {
	if len(g.cyclic) == 0 {
		clear(g.lost)
		return
	}
	g.noteLost()
	due := map[id]struct{}{}
	for n, since := range g.lost {
		if since+1 < g.wave {
			due[n] = struct{}{}
		}
	}
	g.close(due)
	g.freeAll(due)
}

// noteLost notes since when no root reaches a node.
func (g *Graph) noteLost() {
	reached := g.reach()
	for n := range g.nodes.all {
		if _, ok := reached[n]; ok || g.familyOf(n).input() {
			delete(g.lost, n)
		} else if g.lost[n] == 0 {
			g.lost[n] = g.wave
		}
	}
}

// reach returns what roots need.
func (g *Graph) reach() map[id]struct{} {
	reached := map[id]struct{}{}
	var stack []id
	visit := func(n id) {
		if _, ok := reached[n]; !ok {
			reached[n] = struct{}{}
			stack = append(stack, n)
		}
	}
	for n := range g.roots {
		visit(n)
	}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, r := range g.nodes.at(n).reads {
			visit(r)
		}
		if ops, ok := g.familyOf(n).(*operators); ok {
			ops.at(n).holds(visit)
		}
	}
	return reached
}

// close leaves those nodes that are needed by nodes of the set only.
func (g *Graph) close(due map[id]struct{}) {
	for before := -1; before != len(due); {
		before = len(due)
		pins := g.pinsOf(due)
		for n := range due {
			nd := g.nodes.at(n)
			outside := func(r id) bool { _, ok := due[r]; return !ok }
			if nd.pins != pins[n] || slices.ContainsFunc(nd.readers, outside) {
				delete(due, n)
			}
		}
	}
}

// pinsOf counts how often operators of the set pin each node.
func (g *Graph) pinsOf(due map[id]struct{}) map[id]uint32 {
	pins := map[id]uint32{}
	for n := range due {
		if ops, ok := g.familyOf(n).(*operators); ok {
			ops.at(n).holds(func(held id) { pins[held]++ })
		}
	}
	return pins
}

func (g *Graph) freeAll(due map[id]struct{}) {
	all := make([]id, 0, len(due))
	for n := range due {
		g.nodes.at(n).readers = nil
		all = append(all, n)
	}
	g.free(all)
}
