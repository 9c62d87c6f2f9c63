package control

import (
	"fmt"
	"maps"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/view"
)

// pair is two resources of one name, of different bytes.
type pair struct {
	typeURL  string
	old, now *view.Body
}

// comparison is a difference in the making.
type comparison struct {
	t          *Trial
	difference *Difference
	types      map[string]*TypeDifference
	// same are resources of the new views that mean the same as one of the old, open those of which that is not known yet.
	same map[*view.Body]*view.Body
	open []pair
}

// passage is what some connections have of a type, and would have.
type passage struct {
	typeURL  string
	old, now *view.Snapshot
	label    string
	proxies  int
	wildcard bool
	names    map[string]bool
}

// compare returns the difference between what is served and the trial's shadow.
func (t *Trial) compare() *comparison {
	c := t.c
	w := &comparison{t: t, difference: &Difference{}, types: map[string]*TypeDifference{}, same: map[*view.Body]*view.Body{}}
	shard, name := c.known[t.known.Name].shard, t.known.Name
	if publishesRows(t.known.ready) || c.known[name].ready != nil && publishesRows(c.known[name].ready) {
		beside := c.beside(shard)
		w.difference = diffRows(c.env.Shard(shard), t.session.shadow.rows, func(table, service string) bool { return beside()[table][service] })
	}
	if t.session.generates() {
		for _, ch := range t.changes() {
			w.view(ch)
		}
		w.difference.Types = sortTypes(w.types)
		w.difference.Refused = t.refused()
	}
	w.difference.Verdicts = t.verdicts
	w.difference.Refused = append(w.difference.Refused, t.losses...)
	if t.patcher != nil {
		for _, ch := range t.patches() {
			w.view(ch)
		}
		w.difference.Types = sortTypes(w.types)
		failed, of, reason := 0, t.patcher.Results(), ""
		for r := range t.patcher.Failures() {
			failed, reason = failed+1, r.Failed()
		}
		if of > 0 && failed == of {
			w.difference.Emptied = append(w.difference.Emptied, fmt.Sprintf("it fails at all of the %d resources that it was asked about: %s", of, reason))
		}
	}
	return w
}

// beside returns a func that looks, once, which services other shards have, and have endpoints for.
func (c *Control) beside(shard *environment.Shard) func() map[string]map[string]bool {
	var found map[string]map[string]bool
	return func() map[string]map[string]bool {
		if found != nil {
			return found
		}
		found = map[string]map[string]bool{environment.Services: {}, environment.Endpoints: {}}
		for table, services := range found {
			for key := range c.env.Beside(shard, table) {
				services[environment.ServiceOf(key)] = true
			}
		}
		return found
	}
}

// refused names the proxies that the new generator won't serve.
func (t *Trial) refused() []string {
	var lines []string
	for _, conn := range t.c.sortedConns() {
		if at := t.session.shadow.seats[conn]; at != nil && at.refused != "" && len(lines) < examples {
			lines = append(lines, fmt.Sprintf("proxy %s would be refused: %s", conn.peer.Node.GetId(), at.refused))
		}
	}
	return lines
}

// changes gathers the connections that go from one view to another.
func (t *Trial) changes() []*passage {
	type key struct{ old, now *view.View }
	var all []*passage
	found := map[key]*passage{}
	for _, conn := range t.c.sortedConns() {
		at := t.session.shadow.seats[conn]
		if at == nil {
			at = &seat{}
		}
		for _, url := range slices.Sorted(maps.Keys(union(asSet(conn.servedBy(t.known.Name)), asSet(at.types)))) {
			k := key{conn.views[url], at.placed[url]}
			if k.old == nil && k.now == nil || k.now == nil && slices.Contains(at.types, url) && conn.home[url] == t.session {
				continue
			}
			ch := found[k]
			if ch == nil {
				ch = &passage{typeURL: url, names: map[string]bool{}}
				if k.old != nil {
					ch.old, ch.label = k.old.Snapshot(), k.old.Label
				}
				if k.now != nil {
					ch.now = k.now.Snapshot()
				}
				found[k] = ch
				all = append(all, ch)
			}
			ch.join(conn.subs[url])
		}
	}
	return all
}

func asSet(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}

// join adds a connection and what it wants.
func (ch *passage) join(sub subscription) {
	ch.proxies++
	ch.wildcard = ch.wildcard || sub.wildcard
	for _, n := range sub.names {
		ch.names[n] = true
	}
}

// view compares what the connections of a passage have and would have.
func (w *comparison) view(ch *passage) {
	t := w.types[ch.typeURL]
	if t == nil {
		t = &TypeDifference{Type: ch.typeURL}
		w.types[ch.typeURL] = t
	}
	t.Views++
	t.Proxies += ch.proxies
	before, removed, added := 0, 0, 0
	for name := range ch.wanted() {
		old, now := ch.old.Get(name), ch.now.Get(name)
		was, is := old != nil && old.Exists(), now != nil && now.Exists()
		if was {
			before++
			t.Before++
		}
		if is {
			t.After++
		}
		switch {
		case was && !is:
			removed++
			t.note(&t.Examples, "−", name)
		case !was && is:
			added++
			t.note(&t.Examples, "+", name)
		case was && is && old.Version() != now.Version():
			w.pair(pair{ch.typeURL, old, now}, t)
		}
	}
	if lost := removed - added; lost*max(1, t.WorstBefore) > t.WorstRemoved*max(1, before) {
		t.WorstBefore, t.WorstRemoved = before, lost
	}
	if before > 0 && removed == before && ch.now.Empty() {
		w.difference.Emptied = append(w.difference.Emptied, fmt.Sprintf("%d proxies would have nothing of type %s (view %s)", ch.proxies, ch.typeURL, ch.label))
	}
}

// wanted returns the names that the connections can see.
func (ch *passage) wanted() map[string]bool {
	if !ch.wildcard {
		return ch.names
	}
	all := maps.Clone(ch.names)
	for _, s := range []*view.Snapshot{ch.old, ch.now} {
		for _, b := range s.Known() {
			all[b.Name()] = true
		}
	}
	return all
}

// pair notes two resources that differ in bytes.
func (w *comparison) pair(p pair, t *TypeDifference) {
	same, known := w.t.memo[p]
	if !known {
		w.open = append(w.open, p)
		return
	}
	w.judge(p, same, t)
}

func (w *comparison) judge(p pair, same bool, t *TypeDifference) {
	if same {
		t.Rewritten++
		w.same[p.now] = p.old
		return
	}
	if len(t.Examples) < examples && !w.t.c.sensitive(p.typeURL) {
		t.changed = append(t.changed, p)
	}
	t.note(&t.Examples, "~", p.old.Name())
}

// decide compares what is open.
func (w *comparison) decide(open []pair) {
	for _, p := range open {
		same := view.Same(p.typeURL, p.old, p.now)
		w.t.memo[p] = same
		for i := range w.difference.Types {
			if t := &w.difference.Types[i]; t.Type == p.typeURL {
				w.judge(p, same, t)
			}
		}
	}
}
