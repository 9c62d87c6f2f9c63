package placement

// Wish is what a connection wants of one type: all that there is, or these names.
type Wish struct {
	Wildcard bool
	Names    []string // sorted; never written to
}
