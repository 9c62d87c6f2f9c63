package serving

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/control/internal/serving/pieces"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/report"
)

// Of says why a connection refuses something of a type; empty: it refuses nothing.
func (q *Quarantine) Of(conn *state.Connection, typeURL string) string {
	for _, r := range q.of[conn.Places.View(typeURL)] {
		if x := r.by[conn.ID]; x != nil && x.refuses() {
			return x.reason
		}
	}
	return ""
}

// Since says of a resource that one of some connections refuses, and that is of a revision after
// one, which it is; empty: there is none.
func (q *Quarantine) Since(number uint64, of func(connection uint64) bool) string {
	for v, refused := range q.of {
		for name, r := range refused {
			if r.Number <= number || v.Connections == 0 {
				continue
			}
			for id, x := range r.by {
				if of(id) && x.refuses() {
					return fmt.Sprintf("%s refuses %s: %s", x.node, name, x.reason)
				}
			}
		}
	}
	return ""
}

// Refusals says which resources are refused.
func (q *Quarantine) Refusals() []report.Refusal {
	out := []report.Refusal{}
	for v, known := range q.of {
		for name, r := range known {
			if now := q.state.Roster.Session(r.Session.Name()); v.Connections == 0 && now != nil && now != r.Session {
				continue // kept for those who come to the view that took its place
			}
			if r.refusers() > 0 || r.held() {
				out = append(out, r.report(name))
			}
		}
	}
	slices.SortFunc(out, func(a, b report.Refusal) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Plugin, b.Plugin), cmp.Compare(a.View.ID, b.View.ID))
	})
	return out
}

func (r *Refused) report(name string) report.Refusal {
	v := r.View
	out := report.Refusal{
		Type: v.Type, Name: name, Plugin: r.Session.Name(), Version: r.Body.Version(), Reason: r.Reason, Since: r.Since.UTC(),
		View:     report.PlacedView{ID: v.ID, Label: v.Label, Facts: v.Facts, Connections: v.Connections},
		Refusing: r.refusers(), Votes: r.refusing(), Rows: slices.Clone(r.Rows), Proxies: []string{},
	}
	for _, ns := range slices.Sorted(maps.Keys(r.tallies)) {
		t := r.tallies[ns]
		out.Voters += t.voters
		if t.instead != nil {
			out.Held, out.Instead = true, t.instead.Version()
			out.Namespaces = append(out.Namespaces, ns)
		}
	}
	bad := map[pieces.Piece]bool{}
	for _, x := range r.by {
		if !x.refuses() {
			continue
		}
		out.Proxies = append(out.Proxies, x.node)
		for _, p := range x.bad() {
			bad[p] = true
		}
	}
	delete(bad, pieces.Whole)
	for _, p := range slices.SortedFunc(maps.Keys(bad), pieces.Compare) {
		if len(out.Pieces) == mostNamed {
			out.Pieces = append(out.Pieces, fmt.Sprintf("and %d more", len(bad)-mostNamed))
			break
		}
		out.Pieces = append(out.Pieces, p.String())
	}
	slices.Sort(out.Proxies)
	out.Proxies = out.Proxies[:min(len(out.Proxies), mostNamed)]
	return out
}
