package control

import (
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/environment"
)

// What sources take away one thing at a time adds up for as long as dripWindow; a look at what there was is kept for each dripStep. It is less
// than dripFloor things, where there are few, that people take away one after the other on purpose.
const (
	dripWindow = 30 * time.Second
	dripStep   = 3 * time.Second
	dripFloor  = 3
)

// mark is what sources had at a time: rows by table, and in the place of endpoints services that have some.
type mark struct {
	at   time.Time
	rows map[*environment.Shard]map[string]int
}

// mark notes what sources have now that all is settled. What was let through is where counting begins anew.
func (c *Control) mark(now time.Time) {
	m := mark{at: now, rows: map[*environment.Shard]map[string]int{}}
	for _, k := range c.known {
		if k.shard != nil && !k.shard.Derived {
			m.rows[k.shard] = c.has(k.shard)
		}
	}
	switch n := len(c.marks); {
	case c.approved:
		c.marks = append(c.marks[:0], m)
		return
	case n > 1 && now.Sub(c.marks[n-2].at) < dripStep:
		c.marks[n-1] = m
	default:
		c.marks = append(c.marks, m)
	}
	// The newest of those from before the window is what there was when it began.
	old := 0
	for old+1 < len(c.marks) && now.Sub(c.marks[old+1].at) >= dripWindow {
		old++
	}
	c.marks = slices.Delete(c.marks, 0, old)
}

func (c *Control) has(s *environment.Shard) map[string]int {
	rows := c.env.LenOf(s)
	if rows[environment.Endpoints] > 0 {
		rows[environment.Endpoints] = c.env.WithEndpointsOf(s)
	}
	return rows
}

// had is how many rows of a table a source had at most since the window began.
func (c *Control) had(s *environment.Shard, table string) (most int) {
	for _, m := range c.marks {
		most = max(most, m.rows[s][table])
	}
	return most
}

// drips says of which tables sources take too much away, one thing after the other. Rows other than services and endpoints count if proxies would
// lose anything now.
func (w *causes) drips(c *Control, exceeded func(n, whole int) bool, loses func() bool) (why []string) {
	for s, takes := range w.by {
		if !takes {
			continue
		}
		has := c.has(s)
		for table, n := range w.of[s] {
			before := c.had(s, table)
			lost := before - has[table]
			if table == environment.Endpoints && w.covered(c.env) {
				continue
			}
			if n <= 0 || lost < dripFloor || !exceeded(lost, before) || table != environment.Services && table != environment.Endpoints && !loses() {
				continue
			}
			what := table
			if table == environment.Endpoints {
				what = "services with endpoints"
			}
			why = append(why, fmt.Sprintf("%d of %d %s of plugin %s would have gone within %s", lost, before, what, s.Name, dripWindow))
		}
	}
	slices.Sort(why)
	return why
}
