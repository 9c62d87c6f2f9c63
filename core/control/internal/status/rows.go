package status

import (
	"cmp"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/report"
)

// Hiding are numbers of a plugin that is a source of rows.
type Hiding struct {
	// Hidden is how many of its rows are not served, Away since when its source is (the zero time:
	// it is there).
	Hidden int
	Away   time.Time
}

// Hiding returns numbers of rows that are not served, for each plugin that publishes rows.
func (pg *Pages) Hiding() map[string]Hiding {
	all := map[string]Hiding{}
	for name, k := range pg.state.Roster.Plugins {
		if state.Publishes(k) {
			all[name] = Hiding{pg.state.Env.Precedence.HiddenRows(k.Shard), k.Absence.Since}
		}
	}
	return all
}

// atOnce is how many hidden rows are looked at before others have their turn.
const atOnce = 10_000

// TableRows says for each table of a plugin what became of its rows: served, hidden and by whom, or
// held. pause is called now and then, so that others have their turn.
func (pg *Pages) TableRows(plugin string, pause func()) []report.TableRows {
	k := pg.state.Roster.Plugins[plugin]
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
	for name, n := range pg.state.Env.Tally.LenOf(k.Shard) {
		if n > 0 {
			of(name).Served = n
		}
	}
	for u := range pg.state.Env.Held.Of(k.Shard) {
		of(u.Table).Held++
	}
	type why struct {
		table string
		why   environment.Why
		by    *environment.Shard
	}
	hidden, seen := map[why]*report.HiddenRows{}, 0
	for h := range pg.state.Env.Precedence.HiddenOf(k.Shard) {
		if seen++; seen%atOnce == 0 { // others have work to do, which may change what is still to come
			pause()
		}
		of(h.Table).Served = max(0, of(h.Table).Served-1)
		w := why{h.Table, h.Why, h.By}
		if hidden[w] == nil {
			hidden[w] = k.Hidden(h)
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
