package view

import (
	"cmp"
	"iter"
	"slices"
)

// Set is an immutable set of resources by name. A body without content marks a name that is known
// to be absent.
type Set struct {
	bodies []*Body // by name
	bytes  int     // as Bytes found them; 0: not asked yet
	lineage
}

// NewSet returns the set of bodies, which it takes; names must be unique.
func NewSet(bodies []*Body) *Set {
	slices.SortFunc(bodies, compareNames)
	return &Set{bodies: bodies, lineage: first()}
}

// Absent returns the mark of a name that is known to be absent.
func Absent(name string) *Body { return &Body{name: name} }

// Exists reports whether the body is a resource rather than the mark of an absent name.
func (b *Body) Exists() bool { return b.fragment != nil }

// Len returns the number of names.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.bodies)
}

// Bytes returns how many bytes the resources have together. Not safe for concurrent use.
func (s *Set) Bytes() int {
	if s.bytes == 0 {
		for _, b := range s.bodies {
			s.bytes += b.Size(true)
		}
	}
	return s.bytes
}

// Bodies returns the set in order of names. Read only.
func (s *Set) Bodies() []*Body {
	if s == nil {
		return nil
	}
	return s.bodies
}

// Get returns the body of a name, nil where the set doesn't know the name.
func (s *Set) Get(name string) *Body {
	if s == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(s.bodies, name, func(b *Body, n string) int { return cmp.Compare(b.name, n) })
	if !ok {
		return nil
	}
	return s.bodies[i]
}

// With returns the set with upserts put in and removes taken out; a name in both is put in. They
// need no order; names of upserts are unique.
func (s *Set) With(upserts []*Body, removes []string) *Set {
	gone := make(map[string]bool, len(removes))
	for _, n := range removes {
		gone[n] = true
	}
	up := slices.Clone(upserts)
	slices.SortFunc(up, compareNames)
	out := make([]*Body, 0, s.Len()+len(up))
	old := s.Bodies()
	for len(old) > 0 || len(up) > 0 {
		switch {
		case len(up) > 0 && (len(old) == 0 || up[0].name <= old[0].name):
			if len(old) > 0 && up[0].name == old[0].name {
				old = old[1:]
			}
			out, up = append(out, up[0]), up[1:]
		default:
			if !gone[old[0].name] {
				out = append(out, old[0])
			}
			old = old[1:]
		}
	}
	return &Set{bodies: out, lineage: s.next(upserts, removes, len(out))}
}

// Each yields the names, which must be in order, each with its body, nil where the set doesn't know
// the name.
func (s *Set) Each(names []string) iter.Seq2[string, *Body] {
	return func(yield func(string, *Body) bool) {
		bodies := s.Bodies()
		for _, name := range names {
			bodies = bodies[until(bodies, name):]
			var b *Body
			if len(bodies) > 0 && bodies[0].name == name {
				b = bodies[0]
			}
			if !yield(name, b) {
				return
			}
		}
	}
}

// until returns how many bodies come before a name: soon if they are few.
func until(bodies []*Body, name string) int {
	reach := 1
	for reach <= len(bodies) && bodies[reach-1].name < name {
		reach *= 2
	}
	from := reach / 2
	i, _ := slices.BinarySearchFunc(bodies[from:min(reach, len(bodies))], name, func(b *Body, n string) int { return cmp.Compare(b.name, n) })
	return from + i
}
