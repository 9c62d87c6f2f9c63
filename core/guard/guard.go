package guard

import "fmt"

// Share is a part of a whole: a percentage, or a number of things.
type Share struct{ Percent, Count int }

// Exceeded reports whether n of a whole is more than the share.
func (s Share) Exceeded(n, whole int) bool {
	if s.Percent > 0 {
		return n*100 > s.Percent*whole
	}
	return n > s.Count
}

// Reached reports whether n of a whole is as much as the share, or more: of two things one is half.
func (s Share) Reached(n, whole int) bool {
	return s.Exceeded(n, whole) || s.Percent > 0 && n > 0 && n*100 == s.Percent*whole
}

// String returns the share as plugins.yaml has it: a percentage or a count.
func (s Share) String() string {
	if s.Percent > 0 {
		return fmt.Sprintf("%d%%", s.Percent)
	}
	return fmt.Sprint(s.Count)
}

// Guard says what looks like an accident.
type Guard struct {
	// MaxRemoved is how much of its rows of a table, or of a view's resources, may go at once.
	MaxRemoved Share
}

// Default is the guard of plugins for which none is declared.
func Default() Guard { return Guard{MaxRemoved: Share{Percent: 50}} }

// guardFloor is from how many things on a percentage counts: one of one may go if nothing else is
// lost by it.
const guardFloor = 2

// Check returns why a difference looks like an accident; none: it doesn't.
func (g Guard) Check(d *Difference) []string {
	var why []string
	over := func(removed, before int) bool {
		return g.MaxRemoved.Exceeded(removed, before) && (g.MaxRemoved.Percent == 0 || removed >= guardFloor)
	}
	if d.Silent {
		why = append(why, "it synced with nothing")
	}
	for _, t := range d.Tables {
		if lost := t.Removed - t.Added; over(lost, t.Before) { // what others come for is no loss
			why = append(why, fmt.Sprintf("%d of %d %s would go, more than guard.maxRemoved, %s", lost, t.Before, t.Table, g.MaxRemoved))
		}
	}
	for _, t := range d.Types {
		if over(t.WorstRemoved, t.WorstBefore) {
			why = append(why, fmt.Sprintf("%d of %d resources of type %s would go from a view, more than guard.maxRemoved, %s",
				t.WorstRemoved, t.WorstBefore, t.Type, g.MaxRemoved))
		}
	}
	why = append(why, d.Emptied...)
	why = append(why, d.Lost...)
	return append(why, d.Refused...)
}
