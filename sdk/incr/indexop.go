package incr

import "slices"

// index is the operator of an Index: it puts elements that changed into their places.
type index struct {
	stand
	// results are the nodes of the members of each index key, in the order of their keys.
	results results
	// where is the index keys under which each element is.
	where places
	// watched passes on the changes of single index keys.
	watched watched
}

// nodes returns the members of the index key that has a node.
func (x *index) nodes(n id) []id { return *(*[]id)(x.results.valueOf(n)) }

func (x *index) eachMember(n id, yield func(id)) {
	for _, member := range x.nodes(n) {
		yield(member)
	}
}

func (x *index) name() string         { return x.results.label }
func (x *index) holds(yield func(id)) { x.results.holds(yield) }

func (x *index) stop() {
	x.leave()
	x.results.forget()
	x.where.forget()
}

func (x *index) run(c *Ctx, self id) (bool, error) {
	moved := map[id]*move{}
	for _, n := range unique(x.drain(c, self)) {
		x.place(n, moved)
	}
	for i, m := range moved {
		x.rebuild(i, m)
	}
	return false, x.where.err()
}

// move is what changes in one place.
type move struct{ in, out, changed []id }

// place notes where an element was and is.
func (x *index) place(n id, moved map[id]*move) {
	at := func(i id) *move {
		if moved[i] == nil {
			moved[i] = &move{}
		}
		return moved[i]
	}
	was, is := x.where.move(x.from, n)
	for _, i := range was {
		if !slices.Contains(is, i) {
			at(i).out = append(at(i).out, n)
		}
	}
	for _, i := range is {
		if slices.Contains(was, i) {
			at(i).changed = append(at(i).changed, n)
		} else {
			at(i).in = append(at(i).in, n)
		}
	}
}

func (x *index) rebuild(i id, m *move) {
	nodes := slices.Clone(x.nodes(i))
	if len(m.out) > 0 {
		nodes = slices.DeleteFunc(nodes, membership(m.out))
	}
	if nodes = insert(nodes, m.in, x.from.keys().less); len(nodes) > 0 {
		assign(&x.results.store, i, nodes, nil)
	} else {
		x.results.withdraw(i)
	}
	if w := x.watched.find(x.results.at(i)); w != nil {
		for _, list := range [][]id{m.in, m.out, m.changed} {
			for _, member := range list {
				w.emit(x.results.g, member)
			}
		}
	}
}

// insert puts nodes into a sorted list: one by one if they are few.
func insert(sorted, nodes []id, order func(a, b id) int) []id {
	if len(nodes) > 8 {
		sorted = append(sorted, nodes...)
		slices.SortFunc(sorted, order)
		return sorted
	}
	for _, n := range nodes {
		i, _ := slices.BinarySearchFunc(sorted, n, order)
		sorted = slices.Insert(sorted, i, n)
	}
	return sorted
}

// unique returns each node once.
func unique(nodes []id) []id {
	if len(nodes) > 1 {
		slices.Sort(nodes)
		nodes = slices.Compact(nodes)
	}
	return nodes
}
