package control

import (
	"maps"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/patch"
	"github.com/coxswain-mesh/coxswain/core/trial"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// countRefusals begins to count what proxies refuse of a switch.
func (t *Trial) countRefusals() {
	before := make(map[*connection]map[string]*view.Snapshot, len(t.c.conns.all))
	for _, conn := range t.c.conns.all {
		before[conn] = maps.Clone(conn.visible)
	}
	t.refusals, t.over = trial.NewRefusals(t.c.env.Number()+1, before), make(chan struct{})
}

// noteSwitched finds out what switches changed whose revision has been served now.
func (ts *trials) noteSwitched(served uint64) {
	for _, t := range ts.all {
		if t.refusals != nil {
			t.refusals.Served(served, func(conn *connection) map[string]*view.Snapshot { return conn.visible })
		}
	}
}

// makes reports whether a plugin has a part in what a stream gets of a type.
func (c *Control) makes(k *known, conn *connection, typeURL string) bool {
	switch k.Kind {
	case pb.KindGenerator:
		return conn.generator[typeURL] == k.Name
	case pb.KindPatch:
		return slices.ContainsFunc(c.patches.chain(conn, typeURL), func(p *patch.Patcher) bool { return p.Name == k.Name })
	}
	return publishesRows(k.ready)
}

// OnRefusals returns a channel that is closed when more proxies than limit have refused what they
// got since the switch.
func (t *Trial) OnRefusals(limit guard.Share) <-chan struct{} {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	if t.refusals.Limit(limit, len(t.c.conns.all)) {
		close(t.over)
	}
	return t.over
}

// Refusals returns what proxies refused since the switch, and why: one line for each proxy and
// type, some of many.
func (t *Trial) Refusals() (proxies int, lines []string) {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	if t.refusals == nil {
		return 0, nil
	}
	return t.refusals.All()
}

// countRefusal notes a refusal of a proxy that had refused nothing of the type before, for switches
// that it may be about.
func (c *Control) countRefusal(conn *connection, o xds.Outcome) {
	last, sub := conn.outcomes[o.Type], conn.subs[o.Type]
	if o.Refused == "" || last.refused != "" {
		return
	}
	for _, t := range c.trials.all {
		if t.refusals == nil || !c.makes(c.roster.known[t.known.Name], conn, o.Type) {
			continue
		}
		over := t.refusals.Refused(trial.Refusal[*connection]{
			Stream: conn, Node: conn.peer.Node.GetId(), Type: o.Type, Reason: o.Refused, Revision: o.Number, Accepted: last.revision,
			Has: conn.visible[o.Type], Wish: sub,
		}, len(c.conns.all))
		if over {
			close(t.over)
		}
	}
}
