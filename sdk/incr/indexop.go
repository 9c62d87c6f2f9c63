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
	var failure error
	for _, n := range unique(o.rows.take(c, self)) {
		if err := o.place(n, moved); err != nil {
			failure = err
		}
	}
	for i, m := range moved {
		o.rebuild(i, m)
	}
	return false, failure
}

// move is what changes in one place.
type move struct{ in, out, changed []id }

// place finds out where an element was and is.
func (o *indexOp[I, K, V]) place(n id, moved map[I]*move) error {
	is, err := o.keys(n)
	if err != nil {
		return err
	}
	at := func(i I) *move {
		if moved[i] == nil {
			moved[i] = &move{}
		}
		return moved[i]
	}
	was := o.where[n]
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
	if len(is) == 0 {
		delete(o.where, n)
	} else {
		o.where[n] = is
	}
	return nil
}

func (o *indexOp[I, K, V]) keys(n id) ([]I, error) { return placesOf(o.rows.from, n, o.by) }

// placesOf returns where an element belongs. Where by panics there is an error: the element stays where it was.
func placesOf[I, K comparable, V any](from Collection[K, V], n id, by func(K, V) []I) (is []I, err error) {
	item, ok := from.item(n)
	if !ok {
		return nil, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = asError(p)
		}
	}()
	return distinct(by(item.Key, item.Value)), nil
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
	clear(o.where)
}

// unique returns each node once.
func unique(nodes []id) []id {
	if len(nodes) > 1 {
		slices.Sort(nodes)
		nodes = slices.Compact(nodes)
	}
	return nodes
}

// distinct returns each key once, in the order in which they come.
func distinct[I comparable](keys []I) []I {
	for i := 1; i < len(keys); i++ {
		if slices.Contains(keys[:i], keys[i]) {
			return distinctCopy(keys)
		}
	}
	return keys
}

func distinctCopy[I comparable](keys []I) []I {
	var out []I
	for _, k := range keys {
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

func (o *indexOp[I, K, V]) holds(yield func(id)) {
	o.all().members(func(n id) bool { yield(n); return true })
}
