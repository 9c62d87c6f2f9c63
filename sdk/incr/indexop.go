package incr

import "slices"

// indexOp is the operator of an index: it puts elements that changed into their places.
type indexOp[I, K comparable, V any] Index[I, K, V]

func (o *indexOp[I, K, V]) name() string           { return o.label }
func (o *indexOp[I, K, V]) settle(t *task)         { o.rows.settle(t) }
func (o *indexOp[I, K, V]) floor() int32           { return o.rows.floor() }
func (o *indexOp[I, K, V]) sources(yield func(id)) { o.rows.sources(yield) }
func (o *indexOp[I, K, V]) all() *Index[I, K, V]   { return (*Index[I, K, V])(o) }

func (o *indexOp[I, K, V]) run(c *Ctx, self id) (bool, error) {
	moved := map[I]*move{}
	for _, n := range unique(o.rows.take(c, self)) {
		o.place(n, moved)
	}
	for i, m := range moved {
		o.rebuild(i, m)
	}
	return false, o.where.err()
}

// move is what changes in one place.
type move struct{ in, out, changed []id }

// place notes where an element was and is.
func (o *indexOp[I, K, V]) place(n id, moved map[I]*move) {
	at := func(i I) *move {
		if moved[i] == nil {
			moved[i] = &move{}
		}
		return moved[i]
	}
	was, is := o.where.move(o.rows.from, n)
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

func (o *indexOp[I, K, V]) rebuild(i I, m *move) {
	n := o.all().intern(i)
	old := o.all().at(n).value
	nodes := slices.Clone(old)
	if len(m.out) > 0 {
		gone := membership(m.out)
		nodes = slices.DeleteFunc(nodes, gone)
	}
	nodes = insert(nodes, m.in, o.rows.from.less)
	o.all().assign(n, nodes, len(nodes) > 0)
	if w := o.watched[i]; w != nil {
		for _, list := range [][]id{m.in, m.out, m.changed} {
			for _, member := range list {
				w.emit(o.g, member)
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

func (o *indexOp[I, K, V]) stop() {
	o.rows.leave()
	o.out.node = 0
	x := o.all()
	for n := range x.members {
		x.erase(n)
	}
	o.where.forget()
}

// unique returns each node once.
func unique(nodes []id) []id {
	if len(nodes) > 1 {
		slices.Sort(nodes)
		nodes = slices.Compact(nodes)
	}
	return nodes
}

func (o *indexOp[I, K, V]) holds(yield func(id)) {
	o.all().members(func(n id) bool { yield(n); return true })
}
