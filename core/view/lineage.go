package view

// lineage is which sets a set was made of, so that sets that follow each other are compared by what
// was changed, and not by what they have. The zero lineage is that of no set.
type lineage struct {
	self *origin
	past []step // oldest first
}

// origin stands for a set without keeping it.
type origin struct{ _ byte }

// step is what was put in or taken out of a set.
type step struct {
	of    *origin
	names []string
}

// maxSteps is how many steps are remembered, and a share of the set how many names they may have
// together: beyond that it is better to look at all.
const (
	maxSteps = 64
	share    = 4
)

func first() lineage { return lineage{self: &origin{}} }

// next is the lineage of a set of a size that is made by putting in and taking out.
func (s *Set) next(upserts []*Body, removes []string, size int) lineage {
	l := first()
	if s == nil || s.self == nil || len(upserts)+len(removes) > size/share {
		return l
	}
	names := make([]string, 0, len(upserts)+len(removes))
	for _, b := range upserts {
		names = append(names, b.name)
	}
	sum := len(names) + len(removes)
	from := max(0, len(s.past)+1-maxSteps)
	for i := len(s.past) - 1; i >= from; i-- {
		if sum += len(s.past[i].names); sum > size/share {
			from = i + 1
		}
	}
	past := s.past[from:]
	l.past = append(past[:len(past):len(past)], step{s.self, append(names, removes...)})
	return l
}

// since returns the steps that made the set of another one, false if that is not known.
func (s *Set) since(old *Set) ([]step, bool) {
	if s == nil || old == nil {
		return nil, false
	}
	for i := len(s.past) - 1; i >= 0; i-- {
		if s.past[i].of == old.self {
			return s.past[i:], true
		}
	}
	return nil, false
}
