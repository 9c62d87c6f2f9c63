package serving

import (
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/environment"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// mostBlamed is how many rows a plugin is told of.
const mostBlamed = 1000

// Blame tells sources for which of their rows proxies refuse what was made from them, and which are
// refused because their namespace is full.
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
	var rows map[string][]pb.Blamed
	changes := [2]uint64{b.quarantine.changes, b.state.Env.Spaces.Changes()}
	for s := range b.state.Roster.Sessions() {
		last, known := b.told[s]
		if !s.Plugin.Ready.Blame || known && b.seen == changes {
			continue
		}
		if rows == nil {
			rows = b.rows()
		}
		now := rows[s.Name()]
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

// rows returns the rows that resources were made from which identities refuse by their votes, and
// those that are refused themselves, by the plugin whose they are.
func (b *Blame) rows() map[string][]pb.Blamed {
	out := map[string][]pb.Blamed{}
	for _, r := range b.quarantine.Refusals() {
		if r.Votes == 0 {
			continue
		}
		for _, n := range r.Rows {
			row := b.state.Env.Committed.Row(environment.Name{Table: n.Table, Key: n.Key}, false)
			if row == nil || len(out[row.Shard]) == mostBlamed {
				continue
			}
			out[row.Shard] = append(out[row.Shard], pb.Blamed{
				Table: n.Table, Key: n.Key, Type: r.Type, Resource: r.Name, Reason: r.Reason, Held: r.Held, Proxies: uint32(r.Refusing),
				Parts: budget.Clip(strings.Join(r.Pieces, ", "), state.MostDetail/16),
			})
		}
	}
	b.refused(out)
	return out
}

// refused adds the rows that are refused because their namespace is full.
func (b *Blame) refused(out map[string][]pb.Blamed) {
	for _, f := range b.state.Env.Spaces.Crowded() {
		for r := range b.state.Env.Spaces.Refused(f.Namespace, f.Policies) {
			if shard := r.Shard.Name; len(out[shard]) < mostBlamed {
				out[shard] = append(out[shard], pb.Blamed{Table: r.Table, Key: r.Key, Reason: Unserved(f, r), Held: r.Kept})
			}
		}
	}
}

// same reports whether two say the same, but for how many proxies there are.
func same(a, b pb.Blamed) bool {
	a.Proxies, b.Proxies = 0, 0
	return a == b
}
