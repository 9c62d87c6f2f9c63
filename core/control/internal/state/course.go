package state

import (
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/revision"
)

// Course is how far revisions are.
type Course struct {
	Epoch    uint64
	Debounce environment.Debounce
	Pace     *revision.Pacer // of revisions of endpoints alone
	// Flight is the revision in the making; nil: there is none.
	Flight *revision.Flight
	// Served is the one that proxies have been given; started: there is one. closed: there will be
	// no more.
	Served          Served
	Started, Closed bool
	// Forced are plugins that take part in the revision that begins next in any case; soon: it is
	// to begin at once. Until one of number undo is ready, nothing is shown (0: there is none).
	Forced map[string]bool
	Soon   bool
	Undo   uint64
	// Moved are rows that are served or hidden otherwise without a commit: they belong to the
	// revision that begins next.
	Moved environment.Changes
	// Ring has somebody look soon at what is due.
	Ring func()
}

// Served describes the revision that proxies have been given.
type Served struct {
	Number  uint64
	Kind    string
	Partial []string
	Rows    int
}
