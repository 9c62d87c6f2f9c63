package members

import (
	"maps"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/patch"
	"github.com/coxswain-mesh/coxswain/core/state"
	"github.com/coxswain-mesh/coxswain/core/trial"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// countRefusals begins to count what proxies refuse of a switch.
func (t *Candidate) countRefusals() {
	before := make(map[*state.Connection]map[string]*view.Snapshot, len(t.ts.state.Connections.All))
	for _, conn := range t.ts.state.Connections.All {
		before[conn] = maps.Clone(conn.Seen)
	}
	t.Refusals, t.Over = trial.NewRefusals(t.ts.state.Env.Committed.Number()+1, before), make(chan struct{})
}

// NoteSwitched finds out what switches changed whose revision has been served now.
func (ts *Trials) NoteSwitched(served uint64) {
	for _, t := range ts.All {
		if t.Refusals != nil {
			t.Refusals.Served(served, func(conn *state.Connection) map[string]*view.Snapshot { return conn.Seen })
		}
	}
}

// makes reports whether a plugin has a part in what a stream gets of a type.
func (ts *Trials) makes(k *state.Plugin, conn *state.Connection, typeURL string) bool {
	switch k.Kind() {
	case pb.KindGenerator:
		return conn.Generators[typeURL] == k.Name()
	case pb.KindPatch:
		return slices.ContainsFunc(ts.patches.Chain(conn, typeURL), func(p *patch.Patcher) bool { return p.Name == k.Name() })
	}
	return state.PublishesRows(k.Ready)
}

// CountRefusal notes a refusal of a proxy that had refused nothing of the type before, for switches
// that it may be about.
func (ts *Trials) CountRefusal(conn *state.Connection, o xds.Outcome) {
	last, sub := conn.Outcomes[o.Type], conn.Subs[o.Type]
	if o.Refused == "" || last.Refused != "" {
		return
	}
	for _, t := range ts.All {
		if t.Refusals == nil || !ts.makes(ts.state.Roster.Plugins[t.Known.Name()], conn, o.Type) {
			continue
		}
		over := t.Refusals.Refused(trial.Refusal[*state.Connection]{
			Stream: conn, Node: conn.Peer.Node.GetId(), Type: o.Type, Reason: o.Refused, Revision: o.Number, Accepted: last.Revision,
			Has: conn.Seen[o.Type], Wish: sub,
		}, len(ts.state.Connections.All))
		if over {
			close(t.Over)
		}
	}
}
