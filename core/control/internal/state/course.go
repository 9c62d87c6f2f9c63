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
	// Served is the revision that proxies have been given. Started reports whether there is one,
	// Closed whether there will be no more.
	Served          Served
	Started, Closed bool
	// Forced holds the names of plugins that take part in the next revision in any case.
	Forced map[string]bool
	// Soon reports whether the next revision is to begin at once.
	Soon bool
	// Undo is the number of a revision before which nothing is shown; 0: there is none.
	Undo uint64
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
