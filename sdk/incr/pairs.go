package incr

import (
	"errors"
	"slices"
)

// pairs is the collection of the pairs that a Join has to look at.
type pairs[A, B, J comparable, VA, VB any] struct {
	results[Pair[A, B], struct{}]
	left  side[J, A, VA]
	right side[J, B, VB]
	// count is in how many join keys a pair meets.
	count map[id]int
}

// side is one of the two collections of a Join: the elements of each join key, and the join keys of each element.
type side[J, K comparable, V any] struct {
	stand[K, V]
	has map[J]map[id]struct{}
	in  places[J, K, V]
}

func newPairs[A, B, J comparable, VA, VB any](left Collection[A, VA], right Collection[B, VB], name string, byLeft func(A, VA) []J, byRight func(B, VB) []J) *pairs[A, B, J, VA, VB] {
	g := left.graph()
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &pairs[A, B, J, VA, VB]{}
	p.left.from, p.left.in = left, newPlaces(byLeft)
	p.right.from, p.right.in = right, newPlaces(byRight)
	p.store = newStore[Pair[A, B], struct{}](g, name, func(a, b struct{}) bool { return true })
	p.madeFrom = func(id, func(id)) {}
	p.index = g.addFamily(&p.results)
	return p
}

// Get implements Source.
func (p *pairs[A, B, J, VA, VB]) Get(c *Ctx, k Pair[A, B]) (struct{}, bool) {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	return p.getFrom(c, p.anchor(), k)
}

// All implements Collection.
func (p *pairs[A, B, J, VA, VB]) All(c *Ctx) []Item[Pair[A, B], struct{}] {
	return all(c, Collection[Pair[A, B], struct{}](p))
}

func (p *pairs[A, B, J, VA, VB]) anchor() id {
	return p.out.anchor(p.g, (*pairsOp[A, B, J, VA, VB])(p))
}

// pairsOp is the operator of pairs.
type pairsOp[A, B, J comparable, VA, VB any] pairs[A, B, J, VA, VB]

func (o *pairsOp[A, B, J, VA, VB]) name() string { return o.label }
func (o *pairsOp[A, B, J, VA, VB]) floor() int32 { return max(o.left.floor(), o.right.floor()) }

func (o *pairsOp[A, B, J, VA, VB]) settle(t *task) {
	o.left.settle(t)
	if t.poison() == nil {
		o.right.settle(t)
	}
}

func (o *pairsOp[A, B, J, VA, VB]) sources(yield func(id)) {
	o.left.sources(yield)
	o.right.sources(yield)
}

func (o *pairsOp[A, B, J, VA, VB]) stop() {
	o.left.stop()
	o.right.stop()
	o.results.eraseAll()
	o.count = nil
}

func (s *side[J, K, V]) stop() {
	s.leave()
	s.has = nil
	s.in.forget()
}

func (o *pairsOp[A, B, J, VA, VB]) run(c *Ctx, self id) (bool, error) {
	if o.count == nil {
		o.count = map[id]int{}
	}
	touched := map[id]struct{}{}
	o.left.shift(c, self, func(l id, j J, by int) {
		for r := range o.right.has[j] {
			o.meet(l, r, by, touched)
		}
	})
	o.right.shift(c, self, func(r id, j J, by int) {
		for l := range o.left.has[j] {
			o.meet(l, r, by, touched)
		}
	})
	for n := range touched {
		o.write(n)
	}
	return false, errors.Join(o.left.in.err(), o.right.in.err())
}

// meet counts that two elements meet in one join key more, or less.
func (o *pairsOp[A, B, J, VA, VB]) meet(l, r id, by int, touched map[id]struct{}) {
	n := o.intern(Pair[A, B]{o.left.from.key(l), o.right.from.key(r)})
	o.count[n] += by
	touched[n] = struct{}{}
}

func (o *pairsOp[A, B, J, VA, VB]) write(n id) {
	o.assign(n, struct{}{}, o.count[n] > 0)
	if o.count[n] == 0 {
		delete(o.count, n)
	}
}

// shift takes in what changed on this side and tells with which join keys elements came (1) and went (-1).
func (s *side[J, K, V]) shift(c *Ctx, self id, tell func(n id, j J, by int)) {
	if s.has == nil {
		s.has = map[J]map[id]struct{}{}
	}
	for _, n := range unique(s.take(c, self)) {
		was, is := s.in.move(s.from, n)
		for _, j := range was {
			if !slices.Contains(is, j) {
				s.remove(n, j)
				tell(n, j, -1)
			}
		}
		for _, j := range is {
			if !slices.Contains(was, j) {
				s.add(n, j)
				tell(n, j, 1)
			}
		}
	}
}

func (s *side[J, K, V]) add(n id, j J) {
	if s.has[j] == nil {
		s.has[j] = map[id]struct{}{}
	}
	s.has[j][n] = struct{}{}
}

func (s *side[J, K, V]) remove(n id, j J) {
	delete(s.has[j], n)
	if len(s.has[j]) == 0 {
		delete(s.has, j)
	}
}

func (o *pairsOp[A, B, J, VA, VB]) holds(yield func(id)) {
	o.results.members(func(n id) bool { yield(n); return true })
}
