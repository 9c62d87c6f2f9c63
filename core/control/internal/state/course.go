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
	// forced holds the names of plugins that take part in the next revision in any case.
	forced map[string]bool
	// soon reports whether the next revision is to begin at once.
	soon bool
	// undo is the number of a revision before which nothing is shown; 0: there is none.
	undo uint64
	// Moved are rows that are served or hidden otherwise without a commit: they belong to the
	// revision that begins next.
	Moved environment.Changes
	// Ring has somebody look soon at what is due.
	Ring func()
}

// Close notes that there will be no more revisions.
func (c *Course) Close() { c.Closed = true }

// TakeOff notes the revision that is in the making now.
func (c *Course) TakeOff(f *revision.Flight) { c.Flight = f }

// Land notes that it is no more, and has somebody look: they may wait for a moment without one.
func (c *Course) Land() {
	c.Flight = nil
	c.Ring()
}

// TakeMoved returns the rows that are served or hidden otherwise, and forgets them.
func (c *Course) TakeMoved() environment.Changes {
	moved := c.Moved
	c.Moved = environment.Changes{}
	return moved
}

// Serve notes what proxies have been given, and reports whether it is the first revision.
func (c *Course) Serve(s Served) (first bool) {
	first, c.Started, c.Served = !c.Started, true, s
	return first
}

// Hurry has the next revision begin at once.
func (c *Course) Hurry() { c.soon = true }

// Hurried reports whether the next revision is to begin at once.
func (c *Course) Hurried() bool { return c.soon }

// Begin notes that the revision begins that was to begin at once.
func (c *Course) Begin() { c.soon = false }

// Force has a plugin take part in the next revision, whatever that changes.
func (c *Course) Force(plugin string) {
	if c.forced == nil {
		c.forced = map[string]bool{}
	}
	c.forced[plugin] = true
}

// Unforce takes Force back.
func (c *Course) Unforce(plugin string) { delete(c.forced, plugin) }

// Forces reports whether a plugin takes part in the next revision in any case.
func (c *Course) Forces() bool { return len(c.forced) > 0 }

// TakeForced returns the plugins that take part in the revision that begins now in any case, and
// forgets them. The caller may keep the map.
func (c *Course) TakeForced() map[string]bool {
	forced := c.forced
	c.forced = nil
	if forced == nil {
		forced = map[string]bool{}
	}
	return forced
}

// Withhold has no revision shown before the one of a number.
func (c *Course) Withhold(until uint64) { c.undo = until }

// ShowAgain takes Withhold back.
func (c *Course) ShowAgain() { c.undo = 0 }

// Withholding reports whether revisions are withheld.
func (c *Course) Withholding() bool { return c.undo != 0 }

// Withholds reports whether the revision of a number is withheld.
func (c *Course) Withholds(number uint64) bool { return number < c.undo }

// Served describes the revision that proxies have been given.
type Served struct {
	Number  uint64
	Kind    string
	Partial []string
	Rows    int
}
