package incr

// Below lists those keys of a function, with their values, that the value of k was made from: read
// directly or by what was read. It costs a walk of all that it was made from, and changes nothing.
func Below[K comparable, V any, L comparable, W any](from Source[K, V], k K, of *Func[L, W]) []Item[L, W] {
	s := from.source().keys()
	g := s.g
	g.turn.RLock()
	defer g.turn.RUnlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	n := find(s, k)
	if n == 0 {
		return nil
	}
	var out []Item[L, W]
	store, seen := &of.fn.store, map[id]struct{}{}
	var visit func(n id)
	visit = func(n id) {
		if _, ok := seen[n]; ok {
			return
		}
		seen[n] = struct{}{}
		nd, f := g.nodes.at(n), g.familyOf(n)
		if f == family(&of.fn) {
			if store.has(n) {
				out = append(out, Item[L, W]{Key: *(*L)(store.at(n)), Value: *(*W)(store.valueOf(n))})
			}
			return
		}
		w := walk{g: g}
		for _, r := range nd.reads {
			if !w.isCollection(r) {
				visit(r)
			}
		}
		f.sources(n, visit)
	}
	visit(n)
	return out
}
