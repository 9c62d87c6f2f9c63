package guard

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/environment"
)

// Hold is what a plugin said that would take too much away. Its rows are kept aside, and those that
// were there before are served; or, where no row changed and a generator or a patch makes less all
// the same, connections keep what they have.
type Hold[C Stream] struct {
	Since   time.Time
	Reasons []string
	// Frozen are the connections that keep what they have; nil for a hold of rows.
	Frozen map[C]bool
	// losing is how many connections would lose something by the rows.
	losing int
	// tries is how often it was let go because nothing seemed to be lost by it any more.
	tries int
}

// Proxies is how many connections keep what they have, or would lose something by the rows.
func (h *Hold[C]) Proxies() int {
	if h.Frozen != nil {
		return len(h.Frozen)
	}
	return h.losing
}

// maxTries is how often a hold is let go by itself.
const maxTries = 3

// Holds judge what connections are about to be shown, and remember what is held, by plugin.
type Holds[C Stream] struct {
	of    map[string]*Hold[C]
	marks marks
	// rounds counts what was taken back of what is not seen, approved says that it is let
	// through, approving that the next revision is.
	rounds              int
	approved, approving bool
	// sparing: what is approved is one plugin's rows, and what others would take away stays held.
	sparing bool
	events  []Event
}

// Event is what is to be told of a hold.
type Event struct {
	// What became of it.
	What What
	// Plugins whose it is, sorted.
	Plugins []string
	// Reasons why, of how many rows, and how many proxies would lose something by it.
	Reasons       []string
	Rows, Proxies int
}

// What became of something that a plugin takes away.
type What int

// Held: it is held. Released: nothing is held any more of the plugin. Through: it is much, and was
// let through, as the plugins may take away what they like.
const (
	Held What = iota
	Released
	Through
)

// Scene is what is about to be shown.
type Scene[C Stream] struct {
	Next Shown[C]
	// Connected is how many connections there are. Mature: all is said of what the rows lead to.
	Connected int
	Mature    bool
	// Env has the rows, Read the tables that somebody reads, Sources the plugins' shards in
	// declared order.
	Env     *environment.Environment
	Read    func() map[string]bool
	Sources func() []*environment.Shard
	// Guard is that of a plugin; nil: what it takes away is let through.
	Guard func(plugin string) *Guard
}

// NewHolds returns it where nothing is held.
func NewHolds[C Stream]() *Holds[C] { return &Holds[C]{of: map[string]*Hold[C]{}} }

// Judge judges what connections are about to be shown. If too much would go it is taken back: the
// rows that caused it are to be committed anew as the environment has them then, and nothing is to
// be shown before that. Where there is no row to take back, the connections that would lose are
// frozen.
func (h *Holds[C]) Judge(s Scene[C], now time.Time) (back bool) {
	if h.approved {
		if !h.sparing {
			h.Freeze(nil, now)
		}
		return false
	}
	var w *causes
	frozen := h.Frozen()
	single := false
	if s.Env.Unseen.Any() {
		w = causesOf(s.Env, s.Read())
	}
	exceeded := s.measure(w)
	losses := sync.OnceValue(func() []*Loss[C] { return Losses(s.Next) })
	var why []string
	if w != nil {
		if s.Mature {
			why = w.drips(s.Env.Tally, h.marks, exceeded, func() bool { return s.Connected == 0 || len(losses()) > 0 })
		}
		single = len(frozen) == 0 && w.single(s.Env)
		if len(why) == 0 && (len(frozen) == 0 && !w.any || single && w.emptiesNone(s.Env.Tally)) {
			return false
		}
		if s.Mature {
			w.emptied = w.lastOf(s.Env)
		}
		if s.Mature && !single {
			why = append(w.rows(s.Env, s.Connected, exceeded), why...)
		}
	}
	var heavy []*Loss[C]
	for _, l := range losses() {
		if l.tooMuch(single, exceeded) || w != nil && len(w.emptied) > 0 && l.leavesDeadEnds(s.Next) {
			heavy = append(heavy, l)
		}
	}
	why = append(why, Told(heavy)...)
	switch {
	case len(why) == 0:
		h.Freeze(nil, now)
		return false
	case w != nil && h.takeBack(s, w, Event{Reasons: why, Proxies: losing(heavy)}, now):
		return true
	case w != nil && s.lenient(w):
		h.events = append(h.events, Event{What: Through, Plugins: w.names(), Reasons: why})
		h.Freeze(nil, now)
		return false
	}
	h.Freeze(heavy, now)
	return false
}

// measure reports whether a number of a whole is more than the plugins that caused it may take
// away.
func (s Scene[C]) measure(w *causes) func(n, whole int) bool {
	var guards []Guard
	if w != nil {
		for shard := range w.by {
			if g := s.Guard(shard.Name); g != nil {
				guards = append(guards, *g)
			}
		}
	}
	if len(guards) == 0 {
		guards = append(guards, Default())
	}
	return func(n, whole int) bool {
		return slices.ContainsFunc(guards, func(g Guard) bool { return g.MaxRemoved.Exceeded(n, whole) })
	}
}

// lenient reports whether all who caused it may take away what they like.
func (s Scene[C]) lenient(w *causes) bool {
	for shard := range w.by {
		if s.Guard(shard.Name) != nil {
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

// takeBack takes rows back: all that those sources have changed that took something away; if none
// did, those that edited something. If that was not enough, all that any source has changed.
func (h *Holds[C]) takeBack(s Scene[C], w *causes, why Event, now time.Time) bool {
	may := func(shard *environment.Shard) bool { return s.Guard(shard.Name) != nil }
	takers := false
	for shard, takes := range w.by {
		takers = takers || takes && may(shard)
	}
	rows := 0
	if h.rounds == 0 {
		rows = s.Env.Held.Hold(func(u environment.UnseenRow) bool {
			takes, causes := w.by[u.Shard]
			return causes && may(u.Shard) && (takes || !takers)
		})
	}
	if rows == 0 {
		rows = s.Env.Held.Hold(func(u environment.UnseenRow) bool { return may(u.Shard) })
	}
	if rows == 0 {
		return false
	}
	h.rounds++
	for _, shard := range s.Sources() {
		if n := s.Env.Held.Rows(shard); n > 0 {
			why.Rows = n
			h.hold(shard.Name, why, now)
		}
	}
	return true
}

// hold notes a hold, and says so if it is new, or for other reasons.
func (h *Holds[C]) hold(plugin string, e Event, now time.Time) *Hold[C] {
	is := h.of[plugin]
	if is == nil {
		is = &Hold[C]{Since: now}
		h.of[plugin] = is
	}
	if !slices.Equal(is.Reasons, e.Reasons) {
		is.Reasons, is.losing, e.Plugins = e.Reasons, e.Proxies, []string{plugin}
		h.events = append(h.events, e)
	}
	return is
}

// losing is how many connections would lose something.
func losing[C Stream](losses []*Loss[C]) int {
	all := map[C]bool{}
	for _, l := range losses {
		for _, conn := range l.conns {
			all[conn] = true
		}
	}
	return len(all)
}

// Freeze freezes the connections of these losses, and no others.
func (h *Holds[C]) Freeze(heavy []*Loss[C], now time.Time) {
	if len(heavy) == 0 && len(h.of) == 0 {
		return
	}
	frozen := map[string]map[C]bool{}
	of := map[string][]*Loss[C]{}
	for _, l := range heavy {
		name := l.conns[0].Generator(l.typeURL)
		if frozen[name] == nil {
			frozen[name] = map[C]bool{}
		}
		for _, conn := range l.conns {
			frozen[name][conn] = true
		}
		of[name] = append(of[name], l)
	}
	for name, is := range h.of {
		if is.Frozen != nil && frozen[name] == nil {
			h.Release(name, "what proxies would have lost is there again, or was let go")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(frozen)) {
		h.hold(name, Event{Reasons: Told(of[name]), Proxies: len(frozen[name])}, now).Frozen = frozen[name]
	}
}

// Frozen are the connections that keep what they have.
func (h *Holds[C]) Frozen() map[C]bool {
	var all map[C]bool
	for _, is := range h.of {
		for conn := range is.Frozen {
			if all == nil {
				all = map[C]bool{}
			}
			all[conn] = true
		}
	}
	return all
}

// Release ends a hold, and says why.
func (h *Holds[C]) Release(plugin, why string) {
	delete(h.of, plugin)
	h.events = append(h.events, Event{What: Released, Plugins: []string{plugin}, Reasons: []string{why}})
}

// Drop ends a hold, if there is one: another plugin takes its place, or none.
func (h *Holds[C]) Drop(plugin string) { delete(h.of, plugin) }

// Over ends the holds of which nothing is left: the plugin says again what is served, or something
// else, or the proxies have gone. rows is how many rows of a plugin are kept aside.
func (h *Holds[C]) Over(gone func(C) bool, rows func(plugin string) int) {
	for name, is := range h.of {
		maps.DeleteFunc(is.Frozen, func(conn C, _ bool) bool { return gone(conn) })
		switch {
		case is.Frozen != nil && len(is.Frozen) == 0:
			h.Release(name, "the proxies have gone")
		case is.Frozen == nil && rows(name) == 0:
			h.Release(name, "the plugin says something else now")
		}
	}
}

// AllSeen notes that proxies see all that was committed, and reports whether something that was
// held was let go, for a revision that is to begin at once: nothing seems to be lost by it any
// more.
func (h *Holds[C]) AllSeen(env *environment.Environment, sources []*environment.Shard, now time.Time) (released bool) {
	if env.Unseen.Any() || h.approved || h.marks == nil {
		h.marks.mark(env.Tally, sources, h.approved, now)
	}
	env.Unseen.Seen()
	h.approved, h.sparing, h.rounds = false, false, 0
	for _, s := range sources {
		if is := h.of[s.Name]; is != nil && is.Frozen == nil && is.tries < maxTries && replaced(env, s) {
			is.tries++
			env.Held.Release(s)
			released = true
		}
	}
	return released
}

// replaced reports whether all that is held of a shard are endpoints whose services have others
// meanwhile, or have gone.
func replaced(env *environment.Environment, s *environment.Shard) bool {
	lost := map[string]int{}
	for u := range env.Held.Of(s) {
		if u.Table != environment.Endpoints || u.Now != nil {
			return false
		}
		lost[environment.ServiceOf(u.Key)]++
	}
	for service, n := range lost {
		stays := env.Committed.Row(environment.Name{Table: environment.Services, Key: service}, false) != nil
		if stays && env.Tally.EndpointsOf(service) <= n {
			return false
		}
	}
	return len(lost) > 0
}

// Approve lets through whatever is shown until all is seen.
func (h *Holds[C]) Approve() { h.approved, h.sparing = true, false }

// ApproveNext lets through the revision that begins next. sparing: what others than its plugin
// would take away stays held.
func (h *Holds[C]) ApproveNext(sparing bool) { h.approving, h.sparing = true, sparing }

// Begin notes that a revision begins of all that waits.
func (h *Holds[C]) Begin() { h.approved, h.approving = h.approved || h.approving, false }

// Approved reports whether what is shown now is let through.
func (h *Holds[C]) Approved() bool { return h.approved }

// Of is what is held of a plugin; nil: nothing.
func (h *Holds[C]) Of(plugin string) *Hold[C] { return h.of[plugin] }

// Plugins are those of which something is held, sorted.
func (h *Holds[C]) Plugins() []string { return slices.Sorted(maps.Keys(h.of)) }

// Events returns what is to be told, once, in order.
func (h *Holds[C]) Events() []Event {
	all := h.events
	h.events = nil
	return all
}
