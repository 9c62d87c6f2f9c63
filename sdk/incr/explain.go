package incr

// Row names a row of an input, or a key of an index or a collection.
type Row struct {
	// Table is the name of the input, index or collection.
	Table string
	Key   any
}

// Explanation is what a result was made from.
type Explanation struct {
	// Rows were read; Missing were looked for and are not there. In the order in which functions
	// read them.
	Rows, Missing []Row
	// More says that there are more than the bound allowed.
	More bool
}

// Explain says what the value of a key was made from, if somebody needs it: rows that were read,
// directly or by what was read, and rows and index keys that were looked for in vain. It names
// limit of them at most.
func Explain[K comparable, V any](from Source[K, V], k K, limit int) (Explanation, bool) {
	s := from.source().keys()
	g := s.g
	g.turn.RLock()
	defer g.turn.RUnlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	n := find(s, k)
	if n == 0 {
		return Explanation{}, false
	}
	return g.explain(n, limit), true
}

// explain walks what n was made from, depth first.
func (g *Graph) explain(n id, limit int) Explanation {
	w := walk{g: g, limit: limit, seen: map[id]struct{}{}}
	w.visit(n)
	return w.out
}

type walk struct {
	g     *Graph
	limit int
	seen  map[id]struct{}
	out   Explanation
}

func (w *walk) visit(n id) {
	if _, ok := w.seen[n]; ok || w.out.More {
		return
	}
	w.seen[n] = struct{}{}
	nd, f := w.g.nodes.at(n), w.g.familyOf(n)
	switch {
	case f.values() && !nd.is(present):
		w.add(&w.out.Missing, Row{f.name(), f.keyOf(n)})
	case f.input():
		w.add(&w.out.Rows, Row{f.name(), f.keyOf(n)})
	default:
		w.below(n, nd, f)
	}
}

func (w *walk) add(list *[]Row, r Row) {
	if len(w.out.Rows)+len(w.out.Missing) == w.limit {
		w.out.More = true
		return
	}
	*list = append(*list, r)
}

func (w *walk) below(n id, nd *node, f family) {
	for _, r := range nd.reads {
		if !w.isCollection(r) {
			w.visit(r)
		}
	}
	f.sources(n, w.visit)
}

// isCollection reports whether a read is that of a collection's operator, which stands for no
// element of it.
func (w *walk) isCollection(n id) bool {
	ops, ok := w.g.familyOf(n).(*operators)
	if !ok {
		return false
	}
	_, whole := ops.at(n).(interface{ takesAll() })
	return !whole
}
