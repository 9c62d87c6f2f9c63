package serving

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/control/internal/patch"
	"github.com/coxswain-mesh/coxswain/core/control/internal/pieces"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/report"
)

// Of says why a connection refuses something of a type; empty: it refuses nothing.
func (q *Quarantine) Of(conn *state.Connection, typeURL string) string {
	for _, r := range q.of[conn.Places.View(typeURL)] {
		if x := r.by[conn.ID]; x != nil && x.refuses() && q.concerns(r, conn.ID) {
			return x.reason
		}
	}
	return ""
}

// Since says of a resource that one of some connections refuses, and that is of a revision after
// one, which it is; empty: there is none.
func (q *Quarantine) Since(number uint64, of func(connection uint64) bool) string {
	for v, refused := range q.of {
		for is, r := range refused {
			if r.Number <= number || v.Connections == 0 {
				continue
			}
			for id, x := range r.by {
				if of(id) && x.refuses() && q.concerns(r, id) {
					return fmt.Sprintf("%s refuses %s: %s", x.node, is.name, x.reason)
				}
			}
		}
	}
	return ""
}

// Refusals says which resources are refused now by somebody who is connected, or are held for
// somebody who is. What is kept for those who may come back is not among them.
func (q *Quarantine) Refusals() []report.Refusal {
	out := []report.Refusal{}
	if q.count == 0 {
		return out
	}
	there := q.there()
	for v, known := range q.of {
		if v.Connections == 0 {
			continue
		}
		for is, r := range known {
			if now := q.report(r, q.refusersOf(r), there[patch.Key{View: v, Chain: is.chain}]); now.Refusing > 0 || now.Held {
				out = append(out, now)
			}
		}
	}
	slices.SortFunc(out, func(a, b report.Refusal) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Plugin, b.Plugin), cmp.Compare(a.View.ID, b.View.ID),
			slices.Compare(a.Patches, b.Patches), cmp.Compare(a.Version, b.Version))
	})
	return out
}

// there are the namespaces that speak for proxies in each view of which something is refused.
func (q *Quarantine) there() map[patch.Key]map[string]bool {
	types := map[string]bool{}
	for v := range q.of {
		types[v.Type] = true
	}
	all := map[patch.Key]map[string]bool{}
	for _, conn := range q.state.Connections.All {
		if !conn.Caller.Voice.Votes() {
			continue
		}
		for url := range types {
			v := conn.Places.View(url)
			if q.of[v] == nil {
				continue
			}
			k := patch.Key{View: v, Chain: q.patches.names(conn, url)}
			if all[k] == nil {
				all[k] = map[string]bool{}
			}
			all[k][conn.Caller.Voice.Namespace] = true
		}
	}
	return all
}

// refusersOf are the connections that refuse something of a resource, are in its view still, and
// ask for it.
func (q *Quarantine) refusersOf(r *Refused) (all []*refuser) {
	for id, x := range r.by {
		if x.refuses() && q.concerns(r, id) {
			all = append(all, x)
		}
	}
	return all
}

// concerns reports whether a connection is to have a resource.
func (q *Quarantine) concerns(r *Refused, connection uint64) bool {
	conn := q.state.Connections.All[connection]
	return conn != nil && q.at(r, conn) && conn.Subs[r.View.Type].Has(r.Body.Name())
}

// report says what is refused of a resource by some of the connections of its view, and what is
// held of it for those namespaces that are there.
func (q *Quarantine) report(r *Refused, by []*refuser, there map[string]bool) report.Refusal {
	v := r.View
	out := report.Refusal{
		Type: v.Type, Name: r.Body.Name(), Plugin: r.Session.Name(), Version: r.Body.Version(), Reason: r.Reason, Since: r.Since.UTC(),
		View:     report.PlacedView{ID: v.ID, Label: v.Label, Facts: v.Facts, Connections: v.Connections},
		Refusing: len(by), Proxies: []string{},
	}
	if r.patched() {
		out.Patches = q.patches.made.By(patch.Key{View: v, Chain: r.Chain}, r.Body.Name())
	}
	r.reportOwners(&out, by)
	for _, ns := range slices.Sorted(maps.Keys(r.tallies)) {
		t := r.tallies[ns]
		if len(by) > 0 {
			out.Votes += t.refusing
		}
		out.Voters += t.voters
		if t.instead != nil && there[ns] {
			out.Held, out.Instead = true, t.instead.Version()
			out.Namespaces = append(out.Namespaces, ns)
		}
	}
	bad := map[pieces.Piece]bool{}
	for _, x := range by {
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

// reportOwners says from which rows the pieces were made that count.
func (r *Refused) reportOwners(out *report.Refusal, by []*refuser) {
	for _, p := range r.accused(slices.Values(by)) {
		rows := r.owners[p]
		if len(rows) == 0 {
			continue
		}
		of := report.Owners{Rows: slices.Clone(rows)}
		if p != pieces.Whole {
			of.Piece = p.String()
		}
		out.Owners = append(out.Owners, of)
		out.Rows = append(out.Rows, rows...)
	}
	slices.SortFunc(out.Rows, state.CompareRows)
	out.Rows = slices.Compact(out.Rows)
}
