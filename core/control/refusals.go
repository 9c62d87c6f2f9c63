package control

import (
	"fmt"
	"maps"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/patch"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// refusals counts the proxies that refuse what a switch has changed for them.
type refusals struct {
	// from is the revision of the switch.
	from uint64
	// before is what streams had, until that revision is served; changed is what it then changed, for each of these streams.
	before  map[*connection]map[string]*view.Snapshot
	changed map[*connection]map[string]changes
	nodes   map[string]bool
	lines   []string
	limit   Share
	over    chan struct{}
	told    bool
}

// changes are resources that a switch changed: the version by name, empty where the resource went.
type changes map[string]string

func newRefusals(from uint64, conns map[uint64]*connection) *refusals {
	r := &refusals{from: from, nodes: map[string]bool{}, over: make(chan struct{}), before: map[*connection]map[string]*view.Snapshot{}}
	for _, conn := range conns {
		r.before[conn] = maps.Clone(conn.visible)
	}
	return r
}

// noteSwitched finds out what switches changed whose revision has been served now.
func (c *Control) noteSwitched(served uint64) {
	for _, t := range c.trials {
		if r := t.refusals; r != nil && r.changed == nil && served >= r.from {
			r.compare()
		}
	}
}

// compare looks at what streams have now. Streams share snapshots: each pair of them is compared once.
func (r *refusals) compare() {
	type pair struct{ was, is *view.Snapshot }
	found := map[pair]changes{}
	r.changed = make(map[*connection]map[string]changes, len(r.before))
	for conn, before := range r.before {
		of := map[string]changes{}
		for url := range union(before, conn.visible) {
			p := pair{before[url], conn.visible[url]}
			if _, ok := found[p]; !ok && p.was != p.is {
				found[p] = changesBetween(p.was, p.is)
			}
			if ch := found[p]; len(ch) > 0 {
				of[url] = ch
			}
		}
		r.changed[conn] = of
	}
	r.before = nil
}

func changesBetween(was, is *view.Snapshot) changes {
	ch := changes{}
	for _, b := range is.Bodies() {
		if old := was.Get(b.Name()); old == nil || old.Version() != b.Version() {
			ch[b.Name()] = b.Version()
		}
	}
	for _, old := range was.Bodies() {
		if b := is.Get(old.Name()); b == nil || !b.Exists() {
			ch[old.Name()] = ""
		}
	}
	return ch
}

// concerns reports whether a stream's refusal of a type may be about what the switch changed: it has some of that, and has not accepted it yet. What a later
// revision changed again, or changed alone, is not the switch's doing.
func (r *refusals) concerns(conn *connection, o xds.Outcome) bool {
	if o.Number < r.from || conn.outcomes[o.Type].revision >= r.from {
		return false
	}
	of, there := r.changed[conn]
	if there {
		return conn.hasAny(o.Type, of[o.Type], true)
	}
	// It came later: it was given what the others were.
	for _, of := range r.changed {
		if conn.hasAny(o.Type, of[o.Type], false) {
			return true
		}
	}
	return false
}

// hasAny reports whether any of the resources that the stream asks for is still as it was changed.
func (conn *connection) hasAny(typeURL string, ch changes, gone bool) bool {
	sub, has := conn.subs[typeURL], conn.visible[typeURL]
	for name, version := range ch {
		if _, named := slices.BinarySearch(sub.names, name); !sub.wildcard && !named {
			continue
		}
		b := has.Get(name)
		if b != nil && b.Exists() && b.Version() == version || gone && version == "" && (b == nil || !b.Exists()) {
			return true
		}
	}
	return false
}

// makes reports whether a plugin has a part in what a stream gets of a type.
func (c *Control) makes(k *known, conn *connection, typeURL string) bool {
	switch k.Kind {
	case pb.KindGenerator:
		return conn.generator[typeURL] == k.Name
	case pb.KindPatch:
		return slices.ContainsFunc(c.chain(conn, typeURL), func(p *patch.Patcher) bool { return p.Name == k.Name })
	}
	return publishesRows(k.ready)
}

// OnRefusals returns a channel that is closed when more proxies than limit have refused what they got since the switch.
func (t *Trial) OnRefusals(limit Share) <-chan struct{} {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	t.refusals.limit = limit
	t.refusals.check(len(t.c.conns))
	return t.refusals.over
}

// Refusals returns what proxies refused since the switch, and why: one line for each proxy and type, some of many.
func (t *Trial) Refusals() (proxies int, lines []string) {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	if t.refusals == nil {
		return 0, nil
	}
	return len(t.refusals.nodes), append(lines, t.refusals.lines...)
}

// countRefusal notes a refusal of a proxy that had refused nothing of the type before, for switches that it may be about.
func (c *Control) countRefusal(conn *connection, o xds.Outcome) {
	if o.Refused == "" || conn.outcomes[o.Type].refused != "" {
		return
	}
	for _, t := range c.trials {
		r := t.refusals
		if r == nil || !c.makes(c.known[t.known.Name], conn, o.Type) || !r.concerns(conn, o) {
			continue
		}
		id := conn.peer.Node.GetId()
		r.nodes[id] = true
		if len(r.lines) < examples {
			r.lines = append(r.lines, fmt.Sprintf("%s refused %s: %s", id, o.Type, budget.Line(o.Refused, 1000)))
		}
		r.check(len(c.conns))
	}
}

func (r *refusals) check(proxies int) {
	if r.limit != (Share{}) && !r.told && r.limit.exceeded(len(r.nodes), proxies) {
		r.told = true
		close(r.over)
	}
}
