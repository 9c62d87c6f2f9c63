package state

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/core/environment"
)

// Instances are what those need who run a plugin for each row of a table.
type Instances struct {
	// Tables are those with such rows. Changed reports whether one of them has changed since Moved
	// was told.
	Tables  []string
	Changed bool
	Moved   chan struct{}
	// Gathered is closed when all that was declared is in. Gone reports whether what that asks for
	// is declared, too.
	Gathered  chan struct{}
	announced bool
	Gone      bool
}

// Gather notes that all that was declared is in.
func (i *Instances) Gather() {
	if !i.announced {
		i.announced = true
		close(i.Gathered)
	}
}

// Go notes that what rows ask for is declared, too.
func (i *Instances) Go() { i.Gone = true }

// Follow names the tables with such rows.
func (i *Instances) Follow(tables []string) { i.Tables = tables }

// Remember has Moved be told at the next revision, whatever changes.
func (i *Instances) Remember() { i.Changed = true }

// Mark notes changes of rows that have an instance of a plugin each.
func (i *Instances) Mark(changes environment.Changes) {
	i.Changed = i.Changed || slices.ContainsFunc(i.Tables, func(t string) bool { return len(changes[t]) > 0 })
}

// Tell says that rows have changed, once what they belong to is served.
func (i *Instances) Tell() {
	if !i.Changed {
		return
	}
	i.Changed = false
	select {
	case i.Moved <- struct{}{}:
	default:
	}
}
