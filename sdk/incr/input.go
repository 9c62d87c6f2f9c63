package incr

// Input is a table of rows that waves change. It is a Collection: functions read single rows, or
// rows by an index of it.
type Input[K comparable, V any] struct {
	rows input
	// edits since the last wave, the latest of each key.
	edits  []edit[K, V]
	latest map[K]int
}

// edit is what a wave will do to a row.
type edit[K comparable, V any] struct {
	key   K
	value V
	ok    bool
}

// NewInput adds a table to the graph. A row set to an equal value is no change; without equal,
// every Set is one. Like all functions that compare, equal must not panic.
func NewInput[K comparable, V any](g *Graph, name string, equal func(a, b V) bool) *Input[K, V] {
	in := &Input[K, V]{rows: input{store: newStore[K](g, name, equal)}}
	g.enroll(&in.rows, &in.rows.store)
	return in
}

// Set gives a row a value at the next wave. The value must not be changed afterwards.
func (in *Input[K, V]) Set(k K, v V) { in.stage(edit[K, V]{k, v, true}) }

// Delete takes a row away at the next wave.
func (in *Input[K, V]) Delete(k K) { in.stage(edit[K, V]{key: k}) }

func (in *Input[K, V]) stage(e edit[K, V]) {
	g := in.rows.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(in.edits) == 0 {
		g.staged = append(g.staged, in.apply)
		in.latest = map[K]int{}
	}
	if i, again := in.latest[e.key]; again {
		in.edits[i] = e
		return
	}
	in.latest[e.key] = len(in.edits)
	in.edits = append(in.edits, e)
}

func (in *Input[K, V]) apply() {
	s := &in.rows.store
	for _, e := range in.edits {
		if e.ok {
			assign(s, intern(s, e.key), e.value, equalOf[V](s))
		} else if n := find(s, e.key); n != 0 {
			s.withdraw(n)
		}
	}
	in.edits, in.latest = nil, nil
}

// Get returns a row, false where there is none.
func (in *Input[K, V]) Get(c *Ctx, k K) (V, bool) {
	s := &in.rows.store
	s.g.mu.Lock()
	defer s.g.mu.Unlock()
	n := intern(s, k)
	s.g.nodes.at(n).flags |= computed
	c.read(n)
	return *(*V)(s.valueOf(n)), s.has(n)
}

// All returns all rows, in the order of their keys. A function that reads them runs again when any
// of them changes.
func (in *Input[K, V]) All(c *Ctx) []Item[K, V] { return all[K, V](c, &in.rows) }

// Len returns the number of rows after the last wave.
func (in *Input[K, V]) Len() int { return in.rows.len() }

func (in *Input[K, V]) source() source { return &in.rows }
