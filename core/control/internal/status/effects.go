package status

import (
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// effect gathers what was made from a row.
type effect struct {
	resources int
	views     map[*view.View]bool
}

// Effects gathers what was made from rows of config kinds, by themselves or by way of rows that
// plugins derived from them.
type Effects struct {
	rows map[report.RowName]*effect
}

// NewEffects returns some of which nothing is known.
func NewEffects() *Effects { return &Effects{rows: map[report.RowName]*effect{}} }

// Add notes what a resource was made from. written are the objects that rows come from, by source.
func (f *Effects) Add(o *Origins, s Subject, because *pb.Because, written map[string][]report.RowName) {
	seen := map[report.RowName]bool{}
	note := func(n report.RowName) {
		if seen[n] {
			return
		}
		seen[n] = true
		e := f.rows[n]
		if e == nil {
			e = &effect{views: map[*view.View]bool{}}
			f.rows[n] = e
		}
		e.resources++
		e.views[s.View] = true
	}
	for _, r := range because.Rows {
		n := report.RowName{Table: r.Table, Key: r.Key}
		if strings.Contains(n.Table, "/") {
			note(n)
		}
		if row := o.state.Env.Committed.Row(environment.Name{Table: n.Table, Key: n.Key}, false); row != nil {
			for _, w := range written[row.Source] {
				note(w)
			}
		}
	}
}

// Written are the rows of config kinds by where they come from.
func (o *Origins) Written() map[string][]report.RowName {
	all := map[string][]report.RowName{}
	for _, table := range o.state.Env.Committed.Tables() {
		if !strings.Contains(table, "/") {
			continue
		}
		for key, row := range o.state.Env.Committed.Rows(table, false) {
			if row.Source != "" {
				all[row.Source] = append(all[row.Source], report.RowName{Table: table, Key: key})
			}
		}
	}
	return all
}

// Report is what is known.
func (f *Effects) Report(o *Origins) report.Effects {
	out := report.Effects{Rows: []report.Effect{}, Proxies: len(o.state.Connections.All)}
	for n, e := range f.rows {
		types, most := map[string]int{}, 0
		for v := range e.views {
			types[v.Type] += v.Connections
			most = max(most, types[v.Type])
		}
		out.Rows = append(out.Rows, report.Effect{RowName: n, Resources: e.resources, Proxies: most})
	}
	slices.SortFunc(out.Rows, func(a, b report.Effect) int { return state.CompareRows(a.RowName, b.RowName) })
	reads := map[string]bool{}
	for _, k := range o.state.Roster.Plugins {
		if k.Ready != nil {
			for _, r := range k.Ready.Reads {
				reads[r.Table] = true
			}
		}
	}
	for _, table := range o.state.Env.Committed.Tables() {
		if strings.Contains(table, "/") && !reads[table] && o.state.Env.Committed.Len(table) > 0 {
			out.Unread = append(out.Unread, table)
		}
	}
	return out
}
