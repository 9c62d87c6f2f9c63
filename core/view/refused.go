package view

import (
	"maps"
	"slices"
	"time"
)

// Refused is a resource that was not taken: what the name had before stays.
type Refused struct {
	Type, Name string
	Reason     error
	Since      time.Time
}

// spot is a name in a part or in a view's own set.
type spot struct {
	of   any // *part or *View
	name string
}

// Refused returns the resources that were not taken since the last call.
func (vs *Views) Refused() []Refused {
	bad := vs.bad
	vs.bad = nil
	return bad
}

// refuse notes that a resource was not taken, since when it first was not.
func (vs *Views) refuse(at spot, typeURL string, reason error) {
	r := Refused{typeURL, at.name, reason, time.Now()}
	if before, ok := vs.standing[at]; ok {
		r.Since = before.Since
	}
	vs.standing[at] = r
	vs.bad = append(vs.bad, r)
}

// Standing returns the resources that are refused now.
func (vs *Views) Standing() []Refused { return slices.Collect(maps.Values(vs.standing)) }

// settled forgets what was refused of a part or view that goes.
func (vs *Views) settled(of any) {
	maps.DeleteFunc(vs.standing, func(at spot, _ Refused) bool { return at.of == of })
}
