package placement

import "slices"

// Wish is what a connection wants of one type: all that there is, or these names.
type Wish struct {
	Wildcard bool
	Names    []string // sorted; never written to
}

// Has reports whether something of a name is wanted.
func (w Wish) Has(name string) bool {
	if w.Wildcard {
		return true
	}
	_, ok := slices.BinarySearch(w.Names, name)
	return ok
}
