package members

import (
	"maps"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/control/internal/patch"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/control/internal/trial"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
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
	switch {
	case k.Kind().Generates():
		return conn.Generators[typeURL] == k.Name()
	case k.Kind().Patches():
		return slices.ContainsFunc(ts.patches.Chain(conn, typeURL), func(p *patch.Patcher) bool { return p.Name == k.Name() })
	}
	return state.PublishesRows(k.Ready)
}

// CountRefusal notes a refusal of a proxy that had refused nothing of the type before, for switches
// that it may be about.
func (ts *Trials) CountRefusal(conn *state.Connection, o xds.Outcome) {
	last, sub := conn.Outcomes[o.Type], conn.Subs[o.Type]
	if o.Refused == "" || last.Refused != "" || !conn.Caller.Voice.Votes() {
		return
	}
	for _, t := range ts.All {
		if t.Refusals == nil || !ts.regular(conn, o.Type, t.Refusals.From()) || !ts.makes(ts.state.Roster.Plugins[t.Known.Name()], conn, o.Type) {
			continue
		}
		over := t.Refusals.Refused(trial.Refusal[*state.Connection]{
			Stream: conn, Node: conn.Peer.Node.GetId(), Type: o.Type, Reason: o.Refused, Revision: o.Number, Accepted: last.Revision,
			Identity: conn.Caller.Voice.Identity, Namespace: conn.Caller.Voice.Namespace,
			Has: conn.Seen[o.Type], Wish: sub,
		}, ts.Electorate(t.Refusals.From()))
		if over {
			close(t.Over)
		}
	}
}

// Electorate is who is connected and has a vote: who had accepted pushes before a revision.
func (ts *Trials) Electorate(before uint64) trial.Electorate {
	is := electorateOf{before, len(ts.state.Connections.All), ts.state.Connections.Last}
	if ts.electorateOf == is {
		return ts.electorate
	}
	regular := map[state.Voice]bool{}
	for _, conn := range ts.state.Connections.All {
		for url := range conn.Outcomes {
			regular[conn.Caller.Voice] = regular[conn.Caller.Voice] || conn.Regular(url, before)
		}
	}
	all := trial.Electorate{Streams: map[string]map[string]int{}}
	for _, conn := range ts.state.Connections.All {
		v := conn.Caller.Voice
		if !v.Votes() || !regular[v] {
			continue
		}
		if all.Streams[v.Namespace] == nil {
			all.Streams[v.Namespace] = map[string]int{}
		}
		if all.Streams[v.Namespace][v.Identity]++; v.Operator {
			all.Operators = v.Namespace
		}
	}
	ts.electorate, ts.electorateOf = all, is
	return all
}

// electorateOf is what an electorate was found from: the revision, and who was connected.
type electorateOf struct {
	before      uint64
	connections int
	last        uint64
}

// regular reports whether who speaks for a connection had accepted pushes of a type before a
// revision.
func (ts *Trials) regular(conn *state.Connection, typeURL string, before uint64) bool {
	if conn.Regular(typeURL, before) {
		return true
	}
	for _, other := range ts.state.Connections.All {
		if other.Caller.Voice == conn.Caller.Voice && other.Regular(typeURL, before) {
			return true
		}
	}
	return false
}

// Left notes that a connection has gone: what it refused counts no more.
func (ts *Trials) Left(conn *state.Connection) {
	for _, t := range ts.All {
		if t.Refusals != nil {
			t.Refusals.Left(conn)
		}
	}
}
