package serving

import (
	"fmt"
	"maps"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/view"
)

// Losses are what connections would lose, and what is held for that.
type Losses struct {
	state *state.State
	Holds *guard.Holds[*state.Connection]
	// instead judges what connections are about to be shown in place of the guards, or does not.
	instead func(next state.Shown) (held, judges bool)
}

// guards judges what connections are about to be shown. If too much would go nothing is shown, and
// the rows that caused it are taken back in a revision that begins at once. Where there is no row
// to take back, the connections that would lose are frozen.
func (l *Losses) guards(next state.Shown) (held bool) {
	if !l.state.Course.Started {
		return false
	}
	if held, judged := l.instead(next); judged {
		return held
	}
	held = l.Holds.Judge(guard.Scene[*state.Connection]{
		Next: next, Connected: len(l.state.Connections.All), Mature: l.state.Course.Flight == nil || l.state.Course.Flight.Patching(),
		Env: l.state.Env, Read: l.TablesRead, Sources: l.state.Roster.Shards, Guard: l.state.Roster.GuardOf,
	}, l.state.Clock.Now())
	if held {
		l.state.Course.Withhold(l.state.Env.Committed.Number() + 1)
		l.state.Course.Hurry()
		l.state.Course.Ring()
	}
	l.TellHolds()
	return held
}

// TellHolds logs what became of holds.
func (l *Losses) TellHolds() {
	for _, e := range l.Holds.Events() {
		switch e.What {
		case guard.Held:
			what, n := "rows", e.Rows
			if e.Rows == 0 {
				what, n = "proxies", e.Proxies
			}
			plugin := e.Plugins[0]
			l.state.Log.Warn("much would go at once: it is held, and what was there stays served", "plugin", plugin, what, n, "reasons", e.Reasons,
				"do", "coxswain hold show "+plugin+"; then coxswain hold apply "+plugin+", hold drop "+plugin+", or repair what it reads")
		case guard.Released:
			l.state.Log.Info("nothing of this plugin is held any more", "plugin", e.Plugins[0], "because", e.Reasons[0])
		case guard.Through:
			l.state.Log.Warn("much goes at once, and onLoss of its plugins is apply", "plugins", e.Plugins, "reasons", e.Reasons)
		}
	}
}

// Release ends a hold.
func (l *Losses) Release(plugin, why string) {
	l.Holds.Release(plugin, why)
	l.TellHolds()
}

// OverHolds ends the holds of which nothing is left. What was let go by itself may be held again by
// the revision in the making, and counts its tries.
func (l *Losses) OverHolds() {
	if l.state.Course.Hurried() || l.state.Course.Flight != nil {
		return
	}
	l.Holds.Over(func(conn *state.Connection) bool { return l.state.Connections.All[conn.ID] != conn }, func(plugin string) int {
		if k := l.state.Roster.Plugins[plugin]; k != nil {
			return l.state.Env.Held.Rows(k.Shard)
		}
		return 0
	})
	l.TellHolds()
}

// Held is what is held of a plugin, of which something is.
func (l *Losses) Held(name string) state.Held {
	h := l.Holds.Of(name)
	rows := 0
	if k := l.state.Roster.Plugins[name]; k != nil {
		rows = l.state.Env.Held.Rows(k.Shard)
	}
	return state.Held{Plugin: name, Since: h.Since.UTC(), Rows: rows, Proxies: h.Proxies(), Reasons: slices.Clone(h.Reasons)}
}

// ErrNotHeld says that nothing of a plugin is held, and what to do.
func ErrNotHeld(plugin string) error {
	return fmt.Errorf("nothing of plugin %s is held; coxswain hold list shows what is", plugin)
}

// GoneFrom says what connections would lose that are shown this next.
func (l *Losses) GoneFrom(next state.Shown) []string {
	frozen := l.Holds.Frozen()
	next = maps.Clone(next)
	maps.DeleteFunc(next, func(conn *state.Connection, _ map[string]*view.Snapshot) bool { return frozen[conn] })
	return guard.Told(guard.Losses(next))
}

// TooMuchFrom says what connections that are shown this next would lose of which a share, or all,
// would go: nobody asked for any of it to go.
func (l *Losses) TooMuchFrom(next state.Shown, share guard.Share) []string {
	frozen := l.Holds.Frozen()
	next = maps.Clone(next)
	maps.DeleteFunc(next, func(conn *state.Connection, _ map[string]*view.Snapshot) bool { return frozen[conn] })
	return guard.Told(guard.Strictly(next, share))
}

// TablesRead are the tables that somebody reads, but for those that generators alone publish: what
// they ask sources for is of no use without those whom they serve; and but for those that have an
// instance of a plugin for each row (forEach): whether these may go is judged when they do.
func (l *Losses) TablesRead() map[string]bool {
	read, asked := map[string]bool{}, map[string]bool{}
	for _, k := range l.state.Roster.Plugins {
		if k.Ready == nil {
			continue
		}
		for _, r := range k.Ready.Reads {
			read[r.Table] = true
		}
		for _, table := range k.Ready.Publishes {
			by, known := asked[table]
			asked[table] = k.Kind().Generates() && (by || !known)
		}
	}
	maps.DeleteFunc(read, func(table string, _ bool) bool {
		return asked[table] || slices.Contains(l.state.Instances.Tables, table)
	})
	return read
}
