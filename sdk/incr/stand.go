package incr

import "slices"

// stand is where an operator stands on a collection.
type stand struct {
	from rows
	in   *inlet
	// primed says that all elements have been taken once.
	primed bool
}

// drain returns the elements that changed since it was called last; the first time, all.
func (s *stand) drain(c *Ctx, self id) []id {
	c.read(s.from.anchor())
	if s.in == nil {
		s.in = &inlet{node: self}
		out := s.from.outlet()
		out.inlets = append(out.inlets, s.in)
	}
	g := c.g
	if !s.primed || g.nodes.at(self).height != g.front || len(g.cyclic) > 0 {
		s.from.updateMembers(c.task)
		if err := c.task.poison(); err != nil {
			panic(err)
		}
	}
	pend := s.in.pend
	s.in.pend = nil
	if !s.primed {
		s.primed = true
		pend = slices.Collect(s.from.members)
	}
	return pend
}

func (s *stand) leave() {
	if s.in != nil {
		s.from.outlet().remove(s.in)
		s.in, s.primed = nil, false
		if b, ok := s.from.(interface{ left() }); ok {
			b.left()
		}
	}
}

func (s *stand) holds(func(id)) {}

func (s *stand) update(t *task) { s.from.updateMembers(t) }
func (s *stand) floor() int32   { return s.from.membersFloor() }

func (s *stand) sources(yield func(id)) {
	s.from.members(func(n id) bool { yield(n); return true })
}
