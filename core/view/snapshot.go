package view

import (
	"iter"
	"slices"
)

// Snapshot is a view at one served revision: parts that it shares with other views and entries of
// its own, which hide the parts'. Two snapshots of equal content may be different pointers, equal
// pointers always mean equal content.
type Snapshot struct {
	own      *Set
	parts    []*Set
	complete bool
	// lacks are names of which there were marks.
	lacks []string
	whole *Snapshot
}

// NewSnapshot returns a snapshot. complete says that the set holds all resources of the view, not
// only those that were wanted by name.
func NewSnapshot(own *Set, parts []*Set, complete bool) *Snapshot {
	return &Snapshot{own: own, parts: parts, complete: complete}
}

// With returns the snapshot with other bodies in the place of those of their names.
func (s *Snapshot) With(instead []*Body) *Snapshot {
	return &Snapshot{own: s.own.With(instead, nil), parts: s.parts, complete: s.complete}
}

// Versions returns what Bodies does, and marks of resources of which the version alone is known.
func (s *Snapshot) Versions() []*Body {
	return slices.DeleteFunc(s.Known(), func(b *Body) bool { return b.version == "" })
}

// Whole returns the snapshot without marks; Lacks says of which names there were some. It is made
// once. Not safe for concurrent use.
func (s *Snapshot) Whole() *Snapshot {
	switch {
	case s == nil:
		return nil
	case s.whole != nil:
		return s.whole
	}
	var lacks []string
	without := func(set *Set) *Set {
		var left []*Body
		for _, b := range set.Bodies() {
			if !b.Exists() && b.version != "" {
				lacks = append(lacks, b.name)
			} else {
				left = append(left, b)
			}
		}
		if len(left) == set.Len() {
			return set
		}
		return NewSet(left)
	}
	w := &Snapshot{own: without(s.own), complete: s.complete}
	for _, p := range s.parts {
		w.parts = append(w.parts, without(p))
	}
	if s.whole = s; len(lacks) > 0 {
		w.lacks, s.whole = lacks, w
	}
	return s.whole
}

// Lacks are the names of resources that a snapshot has nothing of though they were there.
func (s *Snapshot) Lacks() []string {
	if s == nil {
		return nil
	}
	return s.lacks
}

// Filled returns the snapshot with what another one has of the names that it lacks.
func (s *Snapshot) Filled(by *Snapshot) *Snapshot {
	var own []*Body
	for _, name := range s.lacks {
		if b := by.Get(name); b != nil {
			own = append(own, b)
		}
	}
	return s.With(own)
}

// Below returns what is above with those resources of s that don't exist above. Of names of which
// nothing is known there, be it that there is such a resource or that there is none, nothing is
// taken from s.
func (s *Snapshot) Below(above *Snapshot) *Snapshot {
	var own []*Body
	for _, b := range s.Bodies() {
		if x := above.Get(b.name); x != nil && !x.Exists() || x == nil && above.complete {
			own = append(own, b)
		}
	}
	if len(own) == 0 {
		return above
	}
	return &Snapshot{own: NewSet(own), parts: slices.Collect(above.Sets()), complete: above.complete}
}

// Over returns the snapshot above another one, of which what s knows nothing of is to be seen, and
// which is complete if that is.
func (s *Snapshot) Over(below *Snapshot) *Snapshot {
	sets := slices.AppendSeq(slices.Collect(s.Sets()), below.Sets())
	if len(sets) == 0 {
		return below
	}
	return &Snapshot{own: sets[0], parts: sets[1:], complete: below.complete}
}

// Complete reports whether the whole set of the view is known, as a wildcard subscription needs.
func (s *Snapshot) Complete() bool { return s != nil && s.complete }

// Get returns the body of a name. A body that doesn't Exist means that the name is known to be
// absent, nil that nothing is known of it yet.
func (s *Snapshot) Get(name string) *Body {
	if s == nil {
		return nil
	}
	if b := s.own.Get(name); b != nil {
		return b
	}
	for _, p := range s.parts {
		if b := p.Get(name); b != nil {
			return b
		}
	}
	return nil
}

// Each yields the names, which must be in order, each with what Get returns of it.
func (s *Snapshot) Each(names []string) iter.Seq2[string, *Body] {
	if s == nil {
		return (*Set)(nil).Each(names)
	}
	if len(s.parts) == 0 {
		return s.own.Each(names)
	}
	return func(yield func(string, *Body) bool) {
		for _, name := range names {
			if !yield(name, s.Get(name)) {
				return
			}
		}
	}
}

// Bodies returns every existing resource in order of names.
func (s *Snapshot) Bodies() []*Body {
	all := s.Known()
	return slices.DeleteFunc(all, func(b *Body) bool { return !b.Exists() })
}

// Known returns every resource and every mark of an absent name, in order of names.
func (s *Snapshot) Known() []*Body {
	if s == nil {
		return nil
	}
	sets := append([]*Set{s.own}, s.parts...)
	most := 0
	for _, set := range sets {
		most += set.Len()
	}
	all := make([]*Body, 0, most)
	seen := map[string]bool{}
	for _, set := range sets {
		for _, b := range set.Bodies() {
			if len(s.parts) > 0 {
				if seen[b.name] {
					continue
				}
				seen[b.name] = true
			}
			all = append(all, b)
		}
	}
	slices.SortFunc(all, compareNames)
	return all
}

// Sets yields the sets that the snapshot is made of.
func (s *Snapshot) Sets() iter.Seq[*Set] {
	return func(yield func(*Set) bool) {
		if s.own != nil && !yield(s.own) {
			return
		}
		for _, p := range s.parts {
			if p != nil && !yield(p) {
				return
			}
		}
	}
}

// Empty reports whether no resource exists in it.
func (s *Snapshot) Empty() bool { return len(s.Bodies()) == 0 }
