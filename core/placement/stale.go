package placement

import "github.com/coxswain-mesh/coxswain/core/view"

// Stale is what connections, C, do not see yet of the views that they are in.
type Stale[C comparable] struct {
	of map[C]map[string]bool
	// unasked: something went stale since it was looked at what there is to show.
	unasked bool
}

// NewStale returns it where all is seen.
func NewStale[C comparable]() *Stale[C] { return &Stale[C]{of: map[C]map[string]bool{}} }

// Spoil notes that what a connection gets of a type must be looked at again.
func (s *Stale[C]) Spoil(conn C, typeURL string) {
	if s.of[conn] == nil {
		s.of[conn] = map[string]bool{}
	}
	s.of[conn][typeURL] = true
	s.unasked = true
}

// Any reports whether anything is stale.
func (s *Stale[C]) Any() bool { return len(s.of) > 0 }

// Fresh notes that a connection sees all, or has gone.
func (s *Stale[C]) Fresh(conn C) { delete(s.of, conn) }

// Next returns what connections are to be shown of what is stale; compose says what that is of a
// type, or that it is not known yet. ready: all of it is known, so that it can be shown at once.
// While asking, answers are still to come, and nothing new is stale, there is nothing to look at.
func (s *Stale[C]) Next(asking bool, compose func(conn C, typeURL string) (snap *view.Snapshot, known bool)) (next map[C]map[string]*view.Snapshot,
	ready bool) {
	if asking && !s.unasked {
		return nil, false
	}
	s.unasked = false
	ready = true
	next = make(map[C]map[string]*view.Snapshot, len(s.of))
	for conn, types := range s.of {
		next[conn] = make(map[string]*view.Snapshot, len(types))
		for url := range types {
			snap, known := compose(conn, url)
			ready = ready && known
			next[conn][url] = snap
		}
	}
	return next, ready
}
