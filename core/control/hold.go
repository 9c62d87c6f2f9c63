package control

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/guard"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// hold is what a plugin said that would take too much away. Its rows are kept aside, and those that were there before are served; or, where no row
// changed and a generator or a patch makes less all the same, connections keep what they have.
type hold struct {
	since   time.Time
	reasons []string
	// frozen are the connections that keep what they have; nil for a hold of rows.
	frozen map[*connection]bool
	// tries is how often it was let go because nothing seemed to be lost by it any more.
	tries int
}

// Held is a hold as people see it.
type Held struct {
	Plugin string    `json:"plugin"`
	Since  time.Time `json:"since"`
	// Rows is how many changes of its rows are kept aside, Proxies how many keep what they had.
	Rows    int `json:"rows,omitempty"`
	Proxies int `json:"proxies,omitempty"`
	// Reasons say what would go.
	Reasons []string `json:"reasons"`
	// Difference of its rows, where it is asked for.
	Difference *guard.Difference `json:"difference,omitempty"`
}

// guards judges what connections are about to be shown. If too much would go nothing is shown, and the rows that caused it are taken back in a
// revision that begins at once. Where there is no row to take back, the connections that would lose are frozen.
func (c *Control) guards(next shown) (held bool) {
	switch {
	case !c.started:
		return false
	case c.parting != nil && c.parting.aside && !c.parting.judged:
		return c.partingLoses(next)
	case c.approved:
		if !c.sparing {
			c.thaw(nil)
		}
		return false
	}
	var w *causes
	mature := c.flight == nil || c.flight.patching // otherwise it is not said yet what the rows lead to
	frozen := c.frozen()
	single := false
	if c.env.HasUnsettled() {
		w = c.causes()
	}
	exceeded := c.measure(w)
	losses := sync.OnceValue(func() []*loss { return c.losses(next) })
	var why []string
	if w != nil {
		if mature {
			why = w.drips(c, exceeded, func() bool { return len(c.conns) == 0 || len(losses()) > 0 })
		}
		single = len(frozen) == 0 && w.single(c.env)
		if len(why) == 0 && (len(frozen) == 0 && !w.any || single && w.emptiesNone(c.env)) {
			return false
		}
		if mature && !single {
			why = append(w.rows(c, exceeded), why...)
		}
	}
	var heavy []*loss
	for _, l := range losses() {
		if l.tooMuch(single, exceeded) {
			heavy = append(heavy, l)
		}
	}
	why = append(why, told(heavy)...)
	switch {
	case len(why) == 0:
		c.thaw(nil)
		return false
	case w != nil && c.takeBack(w, why):
		return true
	case w != nil && w.lenient(c):
		c.cfg.Log.Warn("much goes at once, and onLoss of its plugins is apply", "plugins", w.names(), "reasons", why)
		c.thaw(nil)
		return false
	}
	c.thaw(heavy)
	return false
}

// measure returns whether a number of a whole is more than the plugins that caused it may take away.
func (c *Control) measure(w *causes) func(n, whole int) bool {
	guards := []guard.Guard{}
	if w != nil {
		for s := range w.by {
			if g := c.guardOf(s.Name); g != nil {
				guards = append(guards, *g)
			}
		}
	}
	if len(guards) == 0 {
		guards = append(guards, guard.Default())
	}
	return func(n, whole int) bool {
		return slices.ContainsFunc(guards, func(g guard.Guard) bool { return g.MaxRemoved.Exceeded(n, whole) })
	}
}

// lenient reports whether all who caused it may take away what they like.
func (w *causes) lenient(c *Control) bool {
	for s := range w.by {
		if c.guardOf(s.Name) != nil {
			return false
		}
	}
	return len(w.by) > 0
}

func (w *causes) names() (names []string) {
	for s := range w.by {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names
}

// takeBack takes rows back: all that those sources have changed that took something away; if none did, those that edited something. If that was
// not enough, all that any source has changed.
func (c *Control) takeBack(w *causes, why []string) bool {
	may := func(s *environment.Shard) bool { return c.guardOf(s.Name) != nil }
	takers := false
	for s, takes := range w.by {
		takers = takers || takes && may(s)
	}
	rows := 0
	if c.rounds == 0 {
		rows = c.env.Hold(func(u environment.Unsettled) bool {
			takes, causes := w.by[u.Shard]
			return causes && may(u.Shard) && (takes || !takers)
		})
	}
	if rows == 0 {
		rows = c.env.Hold(func(u environment.Unsettled) bool { return may(u.Shard) })
	}
	if rows == 0 {
		return false
	}
	c.rounds++
	c.undo, c.soon = c.env.Number()+1, true
	c.ring()
	for _, k := range c.sortedKnown() {
		if n := c.env.HeldRows(k.shard); n > 0 {
			c.holdOf(k.Name, why, "rows", n)
		}
	}
	return true
}

// holdOf notes a hold, and says so if it is new.
func (c *Control) holdOf(plugin string, why []string, what string, n int) *hold {
	h := c.holds[plugin]
	if h == nil {
		h = &hold{since: time.Now()}
		c.holds[plugin] = h
	}
	if !slices.Equal(h.reasons, why) {
		h.reasons = why
		c.cfg.Log.Warn("much would go at once: it is held, and what was there stays served", "plugin", plugin, what, n, "reasons", why,
			"do", "coxswain hold show "+plugin+"; then coxswain hold apply "+plugin+", hold drop "+plugin+", or repair what it reads")
	}
	return h
}

// thaw freezes the connections of these losses, and no others.
func (c *Control) thaw(heavy []*loss) {
	if len(heavy) == 0 && len(c.holds) == 0 {
		return
	}
	now := map[string]map[*connection]bool{}
	of := map[string][]*loss{}
	for _, l := range heavy {
		name := l.conns[0].generator[l.typeURL]
		if now[name] == nil {
			now[name] = map[*connection]bool{}
		}
		for _, conn := range l.conns {
			now[name][conn] = true
		}
		of[name] = append(of[name], l)
	}
	for name, h := range c.holds {
		if h.frozen != nil && now[name] == nil {
			c.release(name, "what proxies would have lost is there again, or was let go")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		c.holdOf(name, told(of[name]), "proxies", len(now[name])).frozen = now[name]
	}
}

// frozen are the connections that keep what they have.
func (c *Control) frozen() map[*connection]bool {
	var all map[*connection]bool
	for _, h := range c.holds {
		for conn := range h.frozen {
			if all == nil {
				all = map[*connection]bool{}
			}
			all[conn] = true
		}
	}
	return all
}

// release ends a hold.
func (c *Control) release(plugin, why string) {
	delete(c.holds, plugin)
	c.cfg.Log.Info("nothing of this plugin is held any more", "plugin", plugin, "because", why)
}

// overHolds ends the holds of which nothing is left: the plugin says again what is served, or something else, or the proxies have gone. What was let
// go by itself may be held again by the revision in the making, and counts its tries.
func (c *Control) overHolds() {
	if c.soon || c.flight != nil {
		return
	}
	for name, h := range c.holds {
		k := c.known[name]
		maps.DeleteFunc(h.frozen, func(conn *connection, _ bool) bool { return c.conns[conn.id] != conn })
		switch {
		case h.frozen != nil && len(h.frozen) == 0:
			c.release(name, "the proxies have gone")
		case h.frozen == nil && (k == nil || c.env.HeldRows(k.shard) == 0):
			c.release(name, "the plugin says something else now")
		}
	}
}

// rest notes that proxies see all that was committed.
func (c *Control) rest() {
	if c.flight != nil || c.undo != 0 || len(c.served.Partial) > 0 {
		return
	}
	for _, k := range c.known {
		if k.Kind != pb.KindGenerator || k.ready == nil || k.asleep {
			continue
		}
		s := c.sessions[k.Name]
		switch {
		case s == nil && time.Since(k.away) >= c.cfg.HoldMax: // nobody waits for it any more
		case s == nil, !s.busy.IsZero(), s.overtaking != 0, s.acked < s.sent:
			return
		}
	}
	if c.env.HasUnsettled() || c.approved || c.marks == nil {
		c.mark(time.Now())
	}
	c.env.Settle()
	c.approved, c.sparing, c.rounds = false, false, 0
	for name, h := range c.holds {
		if h.frozen == nil && h.tries < maxTries && c.replaced(c.known[name].shard) {
			h.tries++
			c.env.Release(c.known[name].shard)
			c.soon = true
			c.ring()
		}
	}
}

// maxTries is how often a hold is let go by itself.
const maxTries = 3

// replaced reports whether all that is held of a shard are endpoints whose services have others meanwhile, or have gone.
func (c *Control) replaced(s *environment.Shard) bool {
	lost := map[string]int{}
	for u := range c.env.Held(s) {
		if u.Table != environment.Endpoints || u.Now != nil {
			return false
		}
		lost[environment.ServiceOf(u.Key)]++
	}
	for service, n := range lost {
		stays := c.env.Row(environment.Name{Table: environment.Services, Key: service}, false) != nil
		if stays && c.env.EndpointsOf(service) <= n {
			return false
		}
	}
	return len(lost) > 0
}

// Holds returns what is held, by plugin.
func (c *Control) Holds() []Held {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Held
	for _, name := range slices.Sorted(maps.Keys(c.holds)) {
		all = append(all, c.held(name))
	}
	return all
}

// Holding says in a line each what is held.
func (c *Control) Holding() []string {
	var lines []string
	for _, h := range c.Holds() {
		lines = append(lines, fmt.Sprintf("held: plugin %s: %s; coxswain hold show %s", h.Plugin, strings.Join(h.Reasons, "; "), h.Plugin))
	}
	return lines
}

func (c *Control) held(name string) Held {
	h := c.holds[name]
	out := Held{Plugin: name, Since: h.since.UTC(), Proxies: len(h.frozen), Reasons: slices.Clone(h.reasons)}
	if k := c.known[name]; k != nil {
		out.Rows = c.env.HeldRows(k.shard)
	}
	return out
}

// Hold returns what is held of a plugin, with the difference of its rows.
func (c *Control) Hold(plugin string) (*Held, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds[plugin] == nil {
		return nil, errNotHeld(plugin)
	}
	out := c.held(plugin)
	before, after := environment.Tables{}, environment.Tables{}
	if k := c.known[plugin]; k != nil {
		for u := range c.env.Held(k.shard) {
			if u.Before != nil {
				before.Put(u.Table, u.Before)
			}
			if u.Now != nil {
				now := *u.Now
				now.Key = u.Key
				after.Put(u.Table, &now)
			}
		}
	}
	out.Difference = guard.Rows(before, after, func(string, string) bool { return false })
	out.Difference.Emptied, out.Difference.Silent = nil, false
	return &out, nil
}

func errNotHeld(plugin string) error {
	return fmt.Errorf("nothing of plugin %s is held; coxswain hold list shows what is", plugin)
}

// ApplyHold lets through what is held of a plugin.
func (c *Control) ApplyHold(plugin string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.holds[plugin]
	if h == nil {
		return errNotHeld(plugin)
	}
	c.release(plugin, "it was let through by command")
	c.sparing = false
	if h.frozen != nil {
		c.approved = true
		c.settle()
		c.rest()
		return nil
	}
	c.env.Release(c.known[plugin].shard)
	c.approving, c.soon = true, true
	c.schedule(time.Now())
	return nil
}

// errAsked is why a session ends whose hold was dropped.
var errAsked = errors.New("what was held of it was dropped: it is started anew, and what it says then is judged anew")

// DropHold forgets what is held of a plugin, and starts it anew: what it says then is judged anew.
func (c *Control) DropHold(plugin string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds[plugin] == nil {
		return errNotHeld(plugin)
	}
	c.release(plugin, "it was dropped by command")
	if k := c.known[plugin]; k != nil {
		c.env.Drop(k.shard)
	}
	if s := c.sessions[plugin]; s != nil {
		s.cancel(errAsked)
	}
	c.schedule(time.Now())
	return nil
}
