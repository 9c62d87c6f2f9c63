package incr

// releaseCycles lets go of failed functions that are needed by each other only. It looks at the whole graph, and is called
// while there is a cycle.
func (g *Graph) releaseCycles() {
	reached := g.reach()
	due := map[id]struct{}{}
	for n := id(1); n <= g.nodes.next; n++ {
		nd := g.nodes.at(n)
		_, ok := reached[n]
		switch {
		case !nd.is(live) || g.familyOf(n).input():
		case ok && nd.needed():
			nd.idle = 0
		case !ok && nd.idle == 0:
			nd.idle = g.wave + 1
		case !ok && overdue(nd, g.wave):
			due[n] = struct{}{}
		}
	}
	g.freeAll(closed(g, due))
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

// closed leaves those nodes that are read by nodes of the set only.
func closed(g *Graph, due map[id]struct{}) map[id]struct{} {
	for again := true; again; {
		again = false
		for n := range due {
			for _, r := range g.nodes.at(n).readers {
				if _, ok := due[r]; !ok {
					delete(due, n)
					again = true
					break
				}
			}
		}
	}
	return due
}

func (g *Graph) freeAll(due map[id]struct{}) {
	var all []id
	for n := range due {
		nd := g.nodes.at(n)
		nd.readers = nil
		if nd.pins == 0 {
			all = append(all, n)
		}
	}
	g.free(all)
}
