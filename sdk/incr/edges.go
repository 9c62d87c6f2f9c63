package incr

import "slices"

// edge says that reader doesn't read node any more.
type edge struct{ node, reader id }

// link replaces what n reads.
func (g *Graph) link(n id, reads []id) {
	nd := g.nodes.at(n)
	if slices.Equal(nd.reads, reads) {
		return
	}
	added, removed := difference(nd.reads, reads)
	for _, r := range added {
		to := g.nodes.at(r)
		to.readers = append(to.readers, n)
		to.idle = 0
	}
	for _, r := range removed {
		g.cuts = append(g.cuts, edge{r, n})
	}
	nd.reads = slices.Clip(reads)
}

// difference returns what is in b alone and what is in a alone.
func difference(a, b []id) (added, removed []id) {
	if len(a) == 0 {
		return b, nil
	}
	inA, inB := membership(a), membership(b)
	for _, n := range b {
		if !inA(n) {
			added = append(added, n)
		}
	}
	for _, n := range a {
		if !inB(n) {
			removed = append(removed, n)
		}
	}
	return added, removed
}

func membership(s []id) func(id) bool {
	if len(s) <= manyReads {
		return func(n id) bool { return slices.Contains(s, n) }
	}
	set := make(map[id]struct{}, len(s))
	for _, n := range s {
		set[n] = struct{}{}
	}
	return func(n id) bool { _, ok := set[n]; return ok }
}

// raise puts n above all that it reads. Nodes in a cycle stay where they are: they are
// checked by looking.
func (g *Graph) raise(n id) {
	nd := g.nodes.at(n)
	if nd.is(inCycle) {
		return
	}
	height := int32(0)
	for _, r := range nd.reads {
		height = max(height, g.nodes.at(r).height+1)
	}
	g.setHeight(n, max(height, g.families[nd.family].floor(n)))
}

// lift raises n to a height at least, and who reads it above that.
func (g *Graph) lift(n id, height int32) {
	nd := g.nodes.at(n)
	if nd.height >= height || nd.is(inCycle) || int(height) > 2*g.nodes.live+1000 {
		return // higher than all nodes on each other: a mistake of ours must not end the process
	}
	g.setHeight(n, height)
}

func (g *Graph) setHeight(n id, height int32) {
	nd := g.nodes.at(n)
	from := nd.height
	nd.height = height
	for _, r := range nd.readers {
		if reader := g.nodes.at(r); reader.height <= nd.height && slices.Contains(reader.reads, n) {
			g.lift(r, nd.height+1)
		}
	}
	g.families[nd.family].lifted(n, from, height)
}

// cut takes readers that went away out of the lists of those they read, and returns who is without
// readers now.
func (g *Graph) cut() []id {
	slices.SortFunc(g.cuts, func(a, b edge) int {
		if a.node != b.node {
			return int(a.node) - int(b.node)
		}
		return int(a.reader) - int(b.reader)
	})
	var bare []id
	for rest := g.cuts; len(rest) > 0; {
		n := rest[0].node
		end := 1
		for end < len(rest) && rest[end].node == n {
			end++
		}
		g.removeReaders(n, rest[:end])
		if !g.nodes.at(n).needed() {
			bare = append(bare, n)
		}
		rest = rest[end:]
	}
	g.cuts = g.cuts[:0]
	return bare
}

// removeReaders removes one entry for each edge. Edges are sorted by reader.
func (g *Graph) removeReaders(n id, edges []edge) {
	nd := g.nodes.at(n)
	if len(edges) <= 4 {
		for _, e := range edges {
			if i := slices.Index(nd.readers, e.reader); i >= 0 {
				last := len(nd.readers) - 1
				nd.readers[i] = nd.readers[last]
				nd.readers = nd.readers[:last]
			}
		}
	} else {
		count := make(map[id]int, len(edges))
		for _, e := range edges {
			count[e.reader]++
		}
		nd.readers = slices.DeleteFunc(nd.readers, func(r id) bool {
			count[r]--
			return count[r] >= 0
		})
	}
	if len(nd.readers) == 0 {
		nd.readers = nil
	}
}
