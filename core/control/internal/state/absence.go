package state

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/report"
	"golang.org/x/time/rate"
)

// Absence is since when a plugin has not had what it publishes: its source is lost, or its session
// has ended. It is a state machine: what happens and the time go in, and whether its rows are to be
// served comes out.
type Absence struct {
	// After is how long its rows are served all the same; 0: for ever.
	After time.Duration
	// Since is the zero time while it is there.
	Since time.Time
	Why   string
	// Said bounds how many lines a source may make that comes and goes.
	Said *rate.Limiter
}

func newAbsence(after time.Duration) Absence {
	return Absence{After: after, Said: rate.NewLimiter(rate.Every(5*time.Second), 10)}
}

// Begins notes that it is away. What is away already is so since before.
func (a *Absence) Begins(why string, now time.Time) {
	if a.Since.IsZero() {
		a.Since = now
	}
	a.Why = why
}

// Ends notes that it is back.
func (a *Absence) Ends() { a.Since, a.Why = time.Time{}, "" }

// Due is when its rows go; the zero time: they don't.
func (a *Absence) Due() time.Time {
	if a.Since.IsZero() || a.After == 0 {
		return time.Time{}
	}
	return a.Since.Add(a.After)
}

// Over reports whether it is away for longer than its rows are served.
func (a *Absence) Over(now time.Time) bool {
	due := a.Due()
	return !due.IsZero() && !now.Before(due)
}

// Why a plugin is away of which nobody says why.
const NoSession = "the plugin is away"

// Succeeds takes over from the plugin that was served under a name: whether the source is away is
// for the new session to say.
func (k *Plugin) Succeeds(s *Session) {
	k.Absence = newAbsence(k.Expected.DropAfter)
	if s.Source.Lost != "" {
		k.Absence.Begins(s.Source.Lost, s.Source.LostAt)
	}
}

// Seen is the absence as people see it; nil: there is none.
func (k *Plugin) Seen() *report.Away {
	if k.Absence.Since.IsZero() {
		return nil
	}
	a := &report.Away{Since: k.Absence.Since.UTC(), Why: k.Absence.Why, Dropped: k.Shard.Aside()}
	if due := k.Absence.Due(); !due.IsZero() {
		a.Drops = due.UTC()
	}
	return a
}
