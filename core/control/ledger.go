package control

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/report"
)

// Hiding are numbers of a plugin that is a source of rows.
type Hiding struct {
	// Hidden is how many of its rows are not served, Away since when its source is (the zero time: it is there).
	Hidden int
	Away   time.Time
}

// Hiding returns these numbers for each plugin that publishes rows.
func (c *Control) Hiding() map[string]Hiding {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages.hiding()
}

func (pg *pages) hiding() map[string]Hiding {
	all := map[string]Hiding{}
	for name, k := range pg.roster.known {
		if publishes(k) {
			all[name] = Hiding{pg.env.HiddenRows(k.shard), k.absence.since}
		}
	}
	return all
}

// atOnce is how many hidden rows are looked at before others have their turn.
const atOnce = 10_000

// TableRows says for each table of a plugin what became of its rows: served, hidden and by whom, or held.
func (c *Control) TableRows(plugin string) []report.TableRows {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages.tableRows(plugin, func() {
		c.mu.Unlock()
		c.mu.Lock()
	})
}

func (pg *pages) tableRows(plugin string, pause func()) []report.TableRows {
	k := pg.roster.known[plugin]
	if k == nil {
		return nil
	}
	tables := map[string]*report.TableRows{}
	of := func(name string) *report.TableRows {
		if tables[name] == nil {
			tables[name] = &report.TableRows{Table: name}
		}
		return tables[name]
	}
	for name, n := range pg.env.LenOf(k.shard) {
		if n > 0 {
			of(name).Served = n
		}
	}
	for u := range pg.env.Held(k.shard) {
		of(u.Table).Held++
	}
	type why struct {
		table string
		why   environment.Why
		by    *environment.Shard
	}
	hidden, seen := map[why]*report.HiddenRows{}, 0
	for h := range pg.env.HiddenOf(k.shard) {
		if seen++; seen%atOnce == 0 { // others have work to do, which may change what is still to come
			pause()
		}
		of(h.Table).Served = max(0, of(h.Table).Served-1)
		w := why{h.Table, h.Why, h.By}
		if hidden[w] == nil {
			hidden[w] = k.hidden(h)
		}
		if hidden[w].Rows++; h.Key < hidden[w].Example {
			hidden[w].Example = h.Key
		}
	}
	for w, rows := range hidden {
		of(w.table).Hidden = append(of(w.table).Hidden, *rows)
	}
	all := make([]report.TableRows, 0, len(tables))
	for _, t := range tables {
		slices.SortFunc(t.Hidden, func(a, b report.HiddenRows) int {
			return cmp.Or(cmp.Compare(a.By, b.By), cmp.Compare(a.Reason, b.Reason))
		})
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b report.TableRows) int { return cmp.Compare(a.Table, b.Table) })
	return all
}

// hidden says why a row of a plugin is hidden.
func (k *known) hidden(h environment.Hidden) *report.HiddenRows {
	rows := &report.HiddenRows{Reason: string(h.Why), Example: h.Key}
	if h.By != nil {
		rows.By = h.By.Name
	}
	switch h.Why {
	case environment.Lower:
		rows.Text = fmt.Sprintf("plugin %s has priority %d (merge), this one %d", rows.By, h.By.Priority, k.shard.Priority)
	case environment.Later:
		rows.Text = fmt.Sprintf("plugin %s has the same key, and stands earlier in plugins.yaml", rows.By)
	case environment.Away:
		rows.Text = fmt.Sprintf("the source is away for longer than onLoss allows (drop-after: %s)", k.absence.after)
	}
	return rows
}
