package incr

import (
	"errors"
	"slices"
	"unsafe"
)

// pairs is the operator of the pairs that a Join has to look at.
type pairs struct {
	results     results
	left, right side
	// keys are the join keys of elements, by number.
	keys dict
	// count is in how many join keys a pair meets.
	count map[id]int
	// pair returns the node of the pair of two keys.
	pair func(left, right unsafe.Pointer) id
}

// side is one of the two collections of a Join: the elements of each join key, and the join keys of
// each element.
type side struct {
	stand
	has map[id]map[id]struct{}
	in  places
}

// newPairs is the collection of pairs of elements that have a join key in common.
func newPairs[A, B, J comparable, VA, VB any](left Collection[A, VA], right Collection[B, VB], name string,
	byLeft func(A, VA) []J, byRight func(B, VB) []J) Collection[Pair[A, B], struct{}] {
	p := &pairs{keys: newDict(kindOf[J]())}
	p.left.from, p.right.from = rowsOf(left), rowsOf(right)
	p.left.in = newPlaces(placesBy(p.left.from, byLeft), p.keys.intern, p.keys.kind.typ)
	p.right.in = newPlaces(placesBy(p.right.from, byRight), p.keys.intern, p.keys.kind.typ)
	g := p.left.from.keys().g
	p.results.store = newStore[Pair[A, B]](g, name, Same[struct{}])
	p.results.operator = p
	p.pair = func(left, right unsafe.Pointer) id {
		return intern(&p.results.store, Pair[A, B]{*(*A)(left), *(*B)(right)})
	}
	g.enroll(&p.results, &p.results.store)
	return newResults[Pair[A, B], struct{}](&p.results)
}

func (o *pairs) name() string         { return o.results.label }
func (o *pairs) floor() int32         { return max(o.left.floor(), o.right.floor()) }
func (o *pairs) holds(yield func(id)) { o.results.holds(yield) }

func (o *pairs) update(t *task) {
	o.left.update(t)
	if t.poison() == nil {
		o.right.update(t)
	}
}

func (o *pairs) sources(yield func(id)) {
	o.left.sources(yield)
	o.right.sources(yield)
}

func (o *pairs) stop() {
	o.left.stop()
	o.right.stop()
	o.keys.forget()
	o.results.forget()
	o.count = nil
}

func (s *side) stop() {
	s.leave()
	s.has = nil
	s.in.forget()
}

func (o *pairs) run(c *Ctx, self id) (bool, error) {
	if o.count == nil {
		o.count = map[id]int{}
	}
	touched := map[id]struct{}{}
	o.left.shift(c, self, func(l, j id, by int) {
		for r := range o.right.has[j] {
			o.meet(l, r, by, touched)
		}
		o.tidy(j)
	})
	o.right.shift(c, self, func(r, j id, by int) {
		for l := range o.left.has[j] {
			o.meet(l, r, by, touched)
		}
		o.tidy(j)
	})
	for n := range touched {
		o.write(n)
	}
	return false, errors.Join(o.left.in.err(), o.right.in.err())
}

// meet counts that two elements meet in one join key more, or less.
func (o *pairs) meet(l, r id, by int, touched map[id]struct{}) {
	n := o.pair(o.left.from.keys().at(l), o.right.from.keys().at(r))
	o.count[n] += by
	touched[n] = struct{}{}
}

// tidy forgets a join key that no element has.
func (o *pairs) tidy(j id) {
	if o.left.has[j] == nil && o.right.has[j] == nil {
		o.keys.drop(j)
	}
}

func (o *pairs) write(n id) {
	if o.count[n] > 0 {
		assign(&o.results.store, n, struct{}{}, Same)
		return
	}
	o.results.withdraw(n)
	delete(o.count, n)
}

// shift takes in what changed on this side and tells with which join keys elements came (1) and
// went (-1).
func (s *side) shift(c *Ctx, self id, tell func(n, j id, by int)) {
	if s.has == nil {
		s.has = map[id]map[id]struct{}{}
	}
	for _, n := range unique(s.drain(c, self)) {
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

func (s *side) add(n, j id) {
	if s.has[j] == nil {
		s.has[j] = map[id]struct{}{}
	}
	s.has[j][n] = struct{}{}
}

func (s *side) remove(n, j id) {
	delete(s.has[j], n)
	if len(s.has[j]) == 0 {
		delete(s.has, j)
	}
}
