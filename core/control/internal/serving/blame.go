package serving

import (
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/report"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// mostBlamed is how many rows a plugin is told of.
const mostBlamed = 1000

// Blame tells sources for which of their rows proxies refuse what was made from them, and which are
// refused because their namespace is full; and controllers the same of rows that they read.
type Blame struct {
	state      *state.State
	quarantine *Quarantine
	// seen are the changes of the quarantine, and of rows that are refused, up to which all have
	// been told; told is what they were told last.
	seen [2]uint64
	told map[*state.Session][]pb.Blamed
}

// Tell tells those who have not been told what changed.
func (b *Blame) Tell() {
	for s := range b.told {
		if b.state.Roster.Session(s.Name()) != s {
			delete(b.told, s)
		}
	}
	var rows *blamed
	changes := [2]uint64{b.quarantine.changes, b.state.Env.Spaces.Changes()}
	for s := range b.state.Roster.Sessions() {
		last, known := b.told[s]
		if !s.Plugin.Ready.Blame || known && b.seen == changes {
			continue
		}
		if rows == nil {
			rows = b.rows()
		}
		now := rows.of(s)
		b.told[s] = now
		if slices.EqualFunc(now, last, same) {
			continue
		}
		out := &pb.Blame{}
		for i := range now {
			out.Rows = append(out.Rows, &now[i])
		}
		s.Out.Tell(&pb.FromCore{Blame: out})
	}
	b.seen = changes
}

// blamed are rows by the plugin whose they are, and by their table.
type blamed struct{ byShard, byTable map[string][]pb.Blamed }

func (b *blamed) add(shard string, r pb.Blamed) {
	if len(b.byShard[shard]) < mostBlamed {
		b.byShard[shard] = append(b.byShard[shard], r)
	}
	if len(b.byTable[r.Table]) < mostBlamed {
		b.byTable[r.Table] = append(b.byTable[r.Table], r)
	}
}

// of are the rows that a plugin is told of: its own; a controller, which has none, those of tables
// that it reads.
func (b *blamed) of(s *state.Session) []pb.Blamed {
	if s.Kind() != pb.KindController {
		return b.byShard[s.Name()]
	}
	var out []pb.Blamed
	for _, r := range s.Plugin.Ready.Reads {
		out = append(out, b.byTable[r.Table]...)
	}
	return out[:min(len(out), mostBlamed)]
}

// rows returns the rows that resources were made from which identities refuse by their votes, or
// which are held, and those that are refused themselves.
func (b *Blame) rows() *blamed {
	out := &blamed{map[string][]pb.Blamed{}, map[string][]pb.Blamed{}}
	for _, r := range b.quarantine.Refusals() {
		if r.Votes == 0 && !r.Held {
			continue
		}
		parts := map[report.RowName][]string{}
		for _, of := range r.Owners {
			for _, n := range of.Rows {
				if of.Piece != "" {
					parts[n] = append(parts[n], of.Piece)
				}
			}
		}
		for _, n := range r.Rows {
			row := b.state.Env.Committed.Row(environment.Name{Table: n.Table, Key: n.Key}, false)
			if row == nil {
				continue
			}
			out.add(row.Shard, pb.Blamed{
				Table: n.Table, Key: n.Key, Type: r.Type, Resource: r.Name, Reason: r.Reason, Held: r.Held, Proxies: uint32(r.Refusing),
				Parts: budget.Clip(strings.Join(parts[n], ", "), state.MostDetail/16),
			})
		}
	}
	b.refused(out)
	return out
}

// refused adds the rows that are refused because their namespace is full.
func (b *Blame) refused(out *blamed) {
	for _, f := range b.state.Env.Spaces.Crowded() {
		for r := range b.state.Env.Spaces.Refused(f.Namespace, f.Policies) {
			out.add(r.Shard.Name, pb.Blamed{Table: r.Table, Key: r.Key, Reason: Unserved(f, r), Held: r.Kept})
		}
	}
}

// same reports whether two say the same, but for how many proxies there are, if any.
func same(a, b pb.Blamed) bool {
	a.Proxies, b.Proxies = min(a.Proxies, 1), min(b.Proxies, 1)
	return a == b
}
