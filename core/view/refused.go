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

// Refusals are the resources that one generator's session says and that can't be taken. Not safe
// for concurrent use.
type Refusals struct {
	standing map[spot]Refused // those that are refused now
	bad      []Refused
}

// NewRefusals returns the refusals of a new session: none.
func NewRefusals() *Refusals { return &Refusals{standing: map[spot]Refused{}} }

// Refused returns the resources that were not taken since the last call.
func (rs *Refusals) Refused() []Refused {
	bad := rs.bad
	rs.bad = nil
	return bad
}

// refuse notes that a resource was not taken, since when it first was not.
func (rs *Refusals) refuse(at spot, typeURL string, reason error) {
	r := Refused{typeURL, at.name, reason, time.Now()}
	if before, ok := rs.standing[at]; ok {
		r.Since = before.Since
	}
	rs.standing[at] = r
	rs.bad = append(rs.bad, r)
}

// repair notes that a name has a resource that was taken, or none.
func (rs *Refusals) repair(at spot) { delete(rs.standing, at) }

// Standing returns the resources that are refused now.
func (rs *Refusals) Standing() []Refused { return slices.Collect(maps.Values(rs.standing)) }

// forget forgets what was refused of a part or view that goes.
func (rs *Refusals) forget(of any) {
	maps.DeleteFunc(rs.standing, func(at spot, _ Refused) bool { return at.of == of })
}
