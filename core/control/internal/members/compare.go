package members

import (
	"fmt"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/control/internal/patch"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/control/internal/trial"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/view"
)

// Compare begins to compare what is served with the trial's shadow.
func (t *Candidate) Compare() *trial.Comparison {
	ts, name := t.ts, t.Known.Name()
	w := trial.Compare(t.Memo, ts.state.Roster.Sensitive)
	if state.Publishes(t.Known) || state.Publishes(ts.state.Roster.Plugins[name]) {
		shard := ts.state.Roster.Plugins[name].Shard
		w.Difference = guard.Rows(ts.state.Env.Pending.Shard(shard), t.Known.Session.Shadow.Rows(), beside(ts.state.Env.Committed, shard))
	}
	if t.Known.Session.Generates() {
		t.passes(w)
	}
	w.Difference.Verdicts = t.Verdicts
	w.Difference.Refused = append(w.Difference.Refused, t.Losses...)
	if t.Known.Patcher == nil {
		return w
	}
	next := state.Shown{}
	t.compose(patch.Waiting{}, func(conn *state.Connection, url string, snap *view.Snapshot) {
		next.Put(conn, url, snap)
		old, sub := t.ts.pins.Live(conn, url, conn.Seen[url]), conn.Subs[url]
		w.Add(trial.Transition{
			Type: url, Old: old, Now: snap, From: old, To: snap, Label: conn.Label(url), Wish: sub,
		})
	})
	w.Difference.Lost = ts.losses.TooMuchFrom(next, t.Known.Guard().MaxRemoved)
	failed, of, reason := 0, t.Known.Patcher.Results(), ""
	for r := range t.Known.Patcher.Failures() {
		failed, reason = failed+1, r.Failed()
	}
	if of > 0 && failed == of {
		w.Difference.Emptied = append(w.Difference.Emptied, fmt.Sprintf("it fails at all of the %d resources that it was asked about: %s", of, reason))
	}
	return w
}

// passes adds what connections have of the served generator, and would have of the trial's.
func (t *Candidate) passes(w *trial.Comparison) {
	shadow, next := t.Known.Session.Shadow, state.Shown{}
	for _, conn := range t.ts.state.Connections.Sorted() {
		if why := shadow.Refused(conn); why != "" && len(w.Difference.Refused) < guard.Examples {
			w.Difference.Refused = append(w.Difference.Refused, fmt.Sprintf("proxy %s would be refused: %s", conn.Peer.Node.GetId(), why))
		}
		types := slices.Concat(conn.ServedBy(t.Known.Name()), shadow.Types(conn))
		slices.Sort(types)
		for _, url := range slices.Compact(types) {
			at, now, sub := conn.Places.At(url), shadow.View(conn, url), conn.Subs[url]
			if now == nil && (at.View == nil || shadow.Serves(conn, url) && at.Session == t.Known.Session) {
				continue
			}
			p := trial.Transition{Type: url, From: at.View, To: now, Wish: sub}
			if old := at.View; old != nil {
				p.Old, p.Label = old.Snapshot(), old.Label
			}
			if now != nil {
				p.Now = now.Snapshot()
			}
			w.Add(p)
			if len(t.ts.patches.Chain(conn, url)) == 0 { // proxies have what it makes as it is
				next.Put(conn, url, p.Now)
			}
		}
	}
	w.Difference.Lost = t.ts.losses.TooMuchFrom(next, t.Known.Guard().MaxRemoved)
}

// hasComposed reports whether the trial's patch, if it is one, has seen all that proxies have; what
// it has not, it is asked.
func (t *Candidate) hasComposed() bool {
	if t.Known.Patcher == nil {
		return true
	}
	if t.Known.Patcher.Asking() || t.ts.patches.Asking() {
		return false
	}
	waiting := patch.Waiting{}
	t.compose(waiting, func(*state.Connection, string, *view.Snapshot) {})
	return len(waiting) == 0
}

// compose calls with what each connection would have of each type that the patch concerns, before
// or after; what is not known yet is noted.
func (t *Candidate) compose(waiting patch.Waiting, with func(*state.Connection, string, *view.Snapshot)) {
	ts := t.ts
	for _, conn := range ts.state.Connections.Sorted() {
		for url := range conn.Places.All() {
			chain := ts.patches.ChainBy(conn, url, ts.state.Roster.Rivals[t.Known].Rules, t.Known.Patcher)
			now := ts.patches.Chain(conn, url)
			if !slices.Contains(chain, t.Known.Patcher) && !slices.ContainsFunc(now, func(p *patch.Patcher) bool { return p.Name == t.Known.Patcher.Name }) {
				continue
			}
			if snap, ok := ts.patches.ComposeBy(conn, url, chain, ts.state.Roster.Rivals[t.Known].Made, waiting); ok {
				with(conn, url, snap)
			}
		}
	}
}

// beside returns a func that looks, once, which services other shards have, and have endpoints for.
func beside(committed *environment.Committed, shard *environment.Shard) func(table, service string) bool {
	var found map[string]map[string]bool
	return func(table, service string) bool {
		if found == nil {
			found = map[string]map[string]bool{environment.Services: {}, environment.Endpoints: {}}
			for table, services := range found {
				for key := range committed.Beside(shard, table) {
					services[environment.ServiceOf(key)] = true
				}
			}
		}
		return found[table][service]
	}
}
