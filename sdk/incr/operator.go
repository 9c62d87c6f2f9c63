package incr

import "reflect"

// op is the changing part of a collection: it takes what changed above it and writes what changes
// below. The lock is held in all methods; run may let go of it.
type op interface {
	name() string
	// run reads what it stands on through c, takes in what changed and reports whether those who
	// read the operator itself must run again.
	run(c *Ctx, self id) (changed bool, err error)
	// update brings elements up to date that the operator takes in.
	update(t *task)
	// floor is the least height it may have, given its elements.
	floor() int32
	// holds yields the nodes that it pins.
	holds(yield func(id))
	// sources yields the nodes that it was made from.
	sources(yield func(id))
	// stop forgets everything: nobody needs it any more.
	stop()
}

// operators is the family of all operators.
type operators struct {
	g     *Graph
	index uint16
	cells slab
}

func newOperators(g *Graph) *operators {
	return &operators{g: g, cells: newSlab(reflect.TypeFor[op]())}
}

func (f *operators) add(o op) id {
	slot := f.cells.allocate()
	*(*op)(f.cells.at(slot)) = o
	n := f.g.nodes.add(f.index, slot)
	f.g.rest(n)
	return n
}

func (f *operators) at(n id) op { return *(*op)(f.cells.at(f.g.nodes.at(n).slot)) }

func (f *operators) name() string   { return "" }
func (f *operators) keyOf(n id) any { return f.at(n).name() }

func (f *operators) compute(c *Ctx, n id) (changed bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			changed, err = false, asError(p)
		}
	}()
	return f.at(n).run(c, n)
}

func (f *operators) verify(t *task, n id) { f.at(n).update(t) }

func (f *operators) release(n id) {
	o, slot := f.at(n), f.g.nodes.at(n).slot
	o.stop()
	f.cells.drop(slot)
}

func (f *operators) trim() int { return f.cells.trim() }

func (f *operators) floor(n id) int32             { return f.at(n).floor() }
func (f *operators) sources(n id, yield func(id)) { f.at(n).sources(yield) }
func (f *operators) changed(n id)                 {}
func (f *operators) lifted(id, int32, int32)      {}
func (f *operators) input() bool                  { return false }
func (f *operators) values() bool                 { return false }

// outlet passes changed elements of a collection to the operators that stand on it.
type outlet struct {
	node   id
	inlets []*inlet
	// whole is the node of those who read all elements.
	whole id
}

// inlet gathers changed elements for one operator.
type inlet struct {
	node id
	pend []id
}

func (o *outlet) emit(g *Graph, n id) {
	for _, in := range o.inlets {
		in.pend = append(in.pend, n)
		g.mark(in.node)
	}
}

func (o *outlet) lift(g *Graph, height int32) {
	for _, in := range o.inlets {
		g.lift(in.node, height)
	}
}

func (o *outlet) remove(in *inlet) {
	for i, other := range o.inlets {
		if other == in {
			o.inlets = append(o.inlets[:i], o.inlets[i+1:]...)
			return
		}
	}
}

// anchor returns the node of the collection's operator, a new one where there is none.
func (o *outlet) anchor(g *Graph, operator op) id {
	if o.node == 0 {
		o.node = g.ops.add(operator)
	}
	return o.node
}
