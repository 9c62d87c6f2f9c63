package guard

import (
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/environment"
)

// What sources take away one thing at a time adds up for as long as dripWindow; a look at what
// there was is kept for each dripStep. It is less than dripFloor things, where there are few, that
// people take away one after the other on purpose.
const (
	dripWindow = 30 * time.Second
	dripStep   = 3 * time.Second
	dripFloor  = 3
)

// mark is what sources had at a time: rows by table, and in the place of endpoints services that
// have some.
type mark struct {
	at   time.Time
	rows map[*environment.Shard]map[string]int
}

// marks are what sources had of late, oldest first.
type marks []mark

// mark notes what sources have now that proxies see all. anew: it was let through, and counting
// begins anew.
func (ms *marks) mark(tally *environment.Tally, sources []*environment.Shard, anew bool, now time.Time) {
	m := mark{at: now, rows: map[*environment.Shard]map[string]int{}}
	for _, s := range sources {
		if !s.Derived {
			m.rows[s] = has(tally, s)
		}
	}
	all := *ms
	switch n := len(all); {
	case anew:
		*ms = append(all[:0], m)
		return
	case n > 1 && now.Sub(all[n-2].at) < dripStep:
		all[n-1] = m
	default:
		all = append(all, m)
	}
	// The newest of those from before the window is what there was when it began.
	old := 0
	for old+1 < len(all) && now.Sub(all[old+1].at) >= dripWindow {
		old++
	}
	*ms = slices.Delete(all, 0, old)
}

func has(tally *environment.Tally, s *environment.Shard) map[string]int {
	rows := tally.LenOf(s)
	if rows[environment.Endpoints] > 0 {
		rows[environment.Endpoints] = tally.WithEndpointsOf(s)
	}
	return rows
}

// had is how many rows of a table a source had at most since the window began.
func (ms marks) had(s *environment.Shard, table string) (most int) {
	for _, m := range ms {
		most = max(most, m.rows[s][table])
	}
	return most
}

// drips says of which tables sources take too much away, one thing after the other. Rows other than
// services and endpoints count if proxies would lose anything now.
func (w *causes) drips(tally *environment.Tally, before marks, exceeded func(n, whole int) bool, loses func() bool) (why []string) {
	for s, takes := range w.by {
		if !takes {
			continue
		}
		left := has(tally, s)
		for table, n := range w.of[s] {
			had := before.had(s, table)
			lost := had - left[table]
			if table == environment.Endpoints && w.covered(tally) {
				continue
			}
			if n <= 0 || lost < dripFloor || !exceeded(lost, had) || table != environment.Services && table != environment.Endpoints && !loses() {
				continue
			}
			what := table
			if table == environment.Endpoints {
				what = "services with endpoints"
			}
			why = append(why, fmt.Sprintf("%d of %d %s of plugin %s would have gone within %s", lost, had, what, s.Name, dripWindow))
		}
	}
	slices.Sort(why)
	return why
}
