package incr

// Input is a table of rows that waves change. It is a Collection: functions read single rows, or rows by an index of it.
type Input[K comparable, V any] struct {
	store[K, V]
	out outlet
	// edits since the last wave, the latest of each key.
	edits  []edit[K, V]
	latest map[K]int
}

// NewInput adds a table to the graph. A row set to an equal value is no change; without equal, every Set is one. Like all
// functions that compare, equal must not panic.
func NewInput[K comparable, V any](g *Graph, name string, equal func(a, b V) bool) *Input[K, V] {
	g.mu.Lock()
	defer g.mu.Unlock()
	in := &Input[K, V]{store: newStore[K](g, name, equal)}
	in.index = g.addFamily(in)
	return in
}

// Set gives a row a value at the next wave. The value must not be changed afterwards.
func (in *Input[K, V]) Set(k K, v V) { in.stage(k, v, true) }

// Delete takes a row away at the next wave.
func (in *Input[K, V]) Delete(k K) {
	var none V
	in.stage(k, none, false)
}

func (in *Input[K, V]) stage(k K, v V, ok bool) {
	in.g.mu.Lock()
	defer in.g.mu.Unlock()
	if len(in.edits) == 0 {
		in.g.staged = append(in.g.staged, in.apply)
		in.latest = map[K]int{}
	}
	if i, again := in.latest[k]; again {
		in.edits[i] = edit[K, V]{k, v, ok}
		return
	}
	in.latest[k] = len(in.edits)
	in.edits = append(in.edits, edit[K, V]{k, v, ok})
}

// edit is what a wave will do to a row.
type edit[K comparable, V any] struct {
	key   K
	value V
	ok    bool
}

func (in *Input[K, V]) apply() {
	for _, e := range in.edits {
		in.write(e)
	}
	in.edits, in.latest = nil, nil
}

func (in *Input[K, V]) write(e edit[K, V]) {
	n := in.find(e.key)
	if n == 0 {
		if !e.ok {
			return
		}
		n = in.intern(e.key)
	}
	in.assign(n, e.value, e.ok)
}

// Get returns a row, false where there is none.
func (in *Input[K, V]) Get(c *Ctx, k K) (V, bool) {
	in.g.mu.Lock()
	defer in.g.mu.Unlock()
	n := in.intern(k)
	in.g.nodes.at(n).flags |= computed
	c.read(n)
	return in.get(n)
}

// All returns all rows, in the order of their keys. A function that reads them runs again when any of them changes.
func (in *Input[K, V]) All(c *Ctx) []Item[K, V] { return all(c, in) }

// Len returns the number of rows after the last wave.
func (in *Input[K, V]) Len() int {
	in.g.mu.Lock()
	defer in.g.mu.Unlock()
	n := 0
	in.members(func(id) bool { n++; return true })
	return n
}

func (in *Input[K, V]) input() bool  { return true }
func (in *Input[K, V]) values() bool { return true }

func (in *Input[K, V]) compute(*Ctx, id) (bool, error) { return false, nil }

func (in *Input[K, V]) changed(n id) { in.out.emit(in.g, n) }

func (in *Input[K, V]) graph() *Graph   { return in.g }
func (in *Input[K, V]) outlet() *outlet { return &in.out }

func (in *Input[K, V]) anchor() id { return in.out.anchor(in.g, (*tableOp[K, V])(in)) }

func (in *Input[K, V]) members(yield func(id) bool) { in.presentOnes(yield) }

func (in *Input[K, V]) settleMembers(*task) {}
func (in *Input[K, V]) membersFloor() int32 { return 0 }

// tableOp is the operator of a table: it stands on nothing and is always up to date.
type tableOp[K comparable, V any] Input[K, V]

func (o *tableOp[K, V]) name() string               { return o.label }
func (o *tableOp[K, V]) run(*Ctx, id) (bool, error) { return false, nil }
func (o *tableOp[K, V]) holds(func(id))             {}
func (o *tableOp[K, V]) settle(*task)               {}
func (o *tableOp[K, V]) floor() int32               { return 0 }
func (o *tableOp[K, V]) stop()                      { o.out.node = 0 }
func (o *tableOp[K, V]) sources(yield func(id)) {
	(*Input[K, V])(o).members(func(n id) bool { yield(n); return true })
}
