package control

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/view"
)

// shown is what connections get of each type.
type shown map[*connection]map[string]*view.Snapshot

// trade is what connections that want the same have of a type now, and would have.
type trade struct {
	typeURL  string
	old, now *view.Snapshot
	all      bool
	first    *string // of the list of names, which connections share
	names    int
}

// loss is what a trade takes from each of its connections.
type loss struct {
	trade
	label   string
	proxies int
	// before is the weight of all that they have, lost of it that which would go and that nothing new makes up for.
	before, lost int
	gone         []string
	conns        []*connection
	// with is the loss of the type whose resources name these, absent what of lost is of names that are not there any more.
	with   *loss
	absent int
}

// losses returns what connections would lose, of those types of which any would lose something.
func (c *Control) losses(next shown) []*loss {
	found := map[trade]*loss{}
	of := func(conn *connection, url string) *loss {
		snap, ok := next[conn][url]
		if old := conn.visible[url]; ok && old != nil && old != snap {
			return c.loss(found, conn, url, trade{typeURL: url, old: old, now: snap})
		}
		return nil
	}
	type pair struct{ own, with *loss }
	pairs := map[pair]*loss{}
	for conn, types := range next {
		for url := range types {
			l := of(conn, url)
			if l == nil || l.lost <= 0 {
				continue
			}
			p := pair{own: l, with: of(conn, c.traits(conn, url).After)}
			if pairs[p] == nil {
				one := *l
				one.with = p.with
				pairs[p] = &one
			}
			pairs[p].proxies++
			pairs[p].conns = append(pairs[p].conns, conn)
		}
	}
	var all []*loss
	for _, l := range pairs {
		if l.excuse(); l.lost > 0 {
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b *loss) int {
		return cmp.Or(cmp.Compare(a.typeURL, b.typeURL), cmp.Compare(a.label, b.label), cmp.Compare(a.lost, b.lost))
	})
	return all
}

// excuse takes out names that are not there any more because others are named instead: a cluster or a listener of another name came for the one
// that named them.
func (l *loss) excuse() {
	if l.with != nil && len(l.with.gone) > 0 && l.with.lost <= 0 {
		l.lost -= l.absent
	}
}

func (c *Control) loss(found map[trade]*loss, conn *connection, url string, t trade) *loss {
	sub := conn.subs[url]
	if t.all, t.names = sub.Wildcard, len(sub.Names); t.names > 0 {
		t.first = &sub.Names[0]
	}
	if l := found[t]; l != nil {
		return l
	}
	l := &loss{trade: t}
	if v := conn.views[url]; v != nil {
		l.label = v.Label
	}
	found[t] = l
	wants := func(name string) bool {
		if sub.Wildcard {
			return true
		}
		_, ok := slices.BinarySearch(sub.Names, name)
		return ok
	}
	seen := map[string]bool{}
	for name := range view.Between(t.old, t.now) {
		if seen[name] || !wants(name) {
			continue
		}
		seen[name] = true
		l.weigh(name)
	}
	if l.lost > 0 {
		l.before = l.whole(sub)
	}
	return l
}

// weigh adds what goes or comes with a name.
func (l *loss) weigh(name string) {
	old, now := l.old.Get(name), l.now.Get(name)
	if view.Equal(old, now) {
		return
	}
	was, is := view.Weight(l.typeURL, old), view.Weight(l.typeURL, now)
	l.lost += was - is
	if was > is {
		l.gone = append(l.gone, name)
	}
	if now == nil || !now.Exists() {
		l.absent += was
	}
}

// whole is the weight of all that a subscription has.
func (l *loss) whole(sub placement.Wish) (weight int) {
	if sub.Wildcard {
		for _, b := range l.old.Bodies() {
			weight += view.Weight(l.typeURL, b)
		}
		return weight
	}
	for _, b := range l.old.Each(sub.Names) {
		weight += view.Weight(l.typeURL, b)
	}
	return weight
}

// tooMuch reports whether that is more than may go unasked. By a single thing of several, that is all of a type for those who want all of it: who
// asks for names may want just that one.
func (l *loss) tooMuch(single bool, exceeded func(n, whole int) bool) bool {
	if single {
		return l.all && l.lost == l.before
	}
	return l.lost == l.before || l.lost >= 2 && exceeded(l.lost, l.before)
}

func (l *loss) String() string {
	noun := map[string]string{"ClusterLoadAssignment": "service with endpoints", "RouteConfiguration": "virtual host"}[guard.ShortType(l.typeURL)]
	slices.Sort(l.gone)
	of := cmp.Or(noun, guard.ShortType(l.typeURL))
	return fmt.Sprintf("%d of %d %s would go from %s (view %s): %s",
		l.lost, l.before, strings.Replace(guard.Plural(of, l.before), "service with endpoints", "services with endpoints", 1), guard.Proxies(l.proxies), l.label, guard.Some(l.gone))
}

// told says the greatest of several losses, and how many others there are: each proxy may have one of its own.
func told(losses []*loss) (lines []string) {
	most := slices.SortedStableFunc(slices.Values(losses), func(a, b *loss) int { return b.lost*b.proxies - a.lost*a.proxies })
	for _, l := range most[:min(len(most), guard.Examples)] {
		lines = append(lines, l.String())
	}
	if more := len(most) - guard.Examples; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more such losses", more))
	}
	return lines
}

// causes are the rows that changed since proxies had all.
type causes struct {
	// gone are rows of sources that are served no more, edited those that are others now; endpoints are counted by their services.
	gone, edited []environment.Unsettled
	// services of which endpoints went or changed, own those of which a source said so.
	services, own map[string]bool
	// any: something was there before, so that it is not all new.
	any  bool
	read map[string]bool
	// by are the shards of sources that changed something other than by adding to it, true: by taking it away.
	by map[*environment.Shard]bool
	// net is how many served rows of a table there are less.
	net map[string]int
	// of is how many there are less of each shard's.
	of map[*environment.Shard]map[string]int
}

// causes gathers them from tables that somebody reads.
func (c *Control) causes() *causes {
	read := c.tablesRead()
	w := &causes{read: read, services: map[string]bool{}, own: map[string]bool{}, by: map[*environment.Shard]bool{}, net: map[string]int{}, of: map[*environment.Shard]map[string]int{}}
	seen := map[environment.Name]bool{}
	for u := range c.env.Unsettled() {
		if !read[u.Table] {
			continue
		}
		had, has := c.env.Had(u.Name), c.env.Row(u.Name, false) != nil
		if !seen[u.Name] {
			seen[u.Name] = true
			w.net[u.Table] += b2i(had) - b2i(has)
		}
		w.note(u, had, has)
	}
	w.net[environment.Endpoints] -= c.env.Revealed()
	return w
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (w *causes) note(u environment.Unsettled, had, has bool) {
	if w.of[u.Shard] == nil {
		w.of[u.Shard] = map[string]int{}
	}
	if u.Now == nil && !has {
		w.of[u.Shard][u.Table]++
	} else if u.Before == nil && !had {
		w.of[u.Shard][u.Table]--
	}
	w.any = w.any || had
	if had && u.Table == environment.Endpoints {
		w.services[environment.ServiceOf(u.Key)] = true
	}
	if u.Shard.Derived || !had {
		return
	}
	if u.Table == environment.Endpoints {
		w.own[environment.ServiceOf(u.Key)] = true
	}
	w.by[u.Shard] = w.by[u.Shard] || !has
	switch {
	case u.Table == environment.Endpoints:
	case has:
		w.edited = append(w.edited, u)
	default:
		w.gone = append(w.gone, u)
	}
}

// single reports whether all of it is one thing of several: a service, the endpoints of one, or one row of another kind, and not all that a source
// has. That is what people take away on purpose.
func (w *causes) single(env *environment.Environment) bool {
	switch {
	case len(w.edited) > 0 || len(w.gone) > 1 || w.drained(env):
		return false
	case len(w.gone) == 0:
		return len(w.own) == 1 && env.WithEndpoints() > b2i(env.EndpointsOf(only(w.own)) > 0)
	}
	u := w.gone[0]
	return env.Len(u.Table) > 0 && (len(w.own) == 0 || len(w.own) == 1 && u.Table == environment.Services && w.own[u.Key])
}

// drained reports whether a source would have no endpoints left, or no rows at all.
func (w *causes) drained(env *environment.Environment) bool {
	for s := range w.by {
		if lost, left := w.lostOf(env, s); lost > 0 && left == 0 || w.of[s][environment.Endpoints] > 0 && env.LenOf(s)[environment.Endpoints] == 0 {
			return true
		}
	}
	return false
}

// lostOf is how many rows less a source has of tables that somebody reads, and how many it has left that it doesn't say are gone.
func (w *causes) lostOf(env *environment.Environment, s *environment.Shard) (lost, left int) {
	for _, n := range w.of[s] {
		lost += n
	}
	for table, n := range env.LenOf(s) {
		if w.read[table] {
			left += n
		}
	}
	for u := range env.Held(s) {
		left -= b2i(w.read[u.Table] && u.Before != nil && u.Now == nil)
	}
	return lost, max(0, left)
}

// emptiesNone reports whether each service of which endpoints went still has some, and nothing else went or changed: nobody can lose anything.
func (w *causes) emptiesNone(env *environment.Environment) bool {
	for s := range w.services {
		if env.EndpointsOf(s) == 0 {
			return false
		}
	}
	return len(w.gone)+len(w.edited) == 0
}

// covered reports whether each service of which sources took endpoints away still has some, as where another registry has it, too.
func (w *causes) covered(env *environment.Environment) bool {
	for s := range w.own {
		if env.EndpointsOf(s) == 0 {
			return false
		}
	}
	return true
}

func only(set map[string]bool) string {
	for s := range set {
		return s
	}
	return ""
}

// rows says what of the tables would go that is too much; exceeded is the guard's word on a number of a whole.
func (w *causes) rows(c *Control, exceeded func(n, whole int) bool) (why []string) {
	env := c.env
	say := func(lost, before int, what string) {
		if before > 0 && lost > 0 && (lost == before || lost >= 2 && exceeded(lost, before)) {
			why = append(why, fmt.Sprintf("%d of %d %s would go", lost, before, what))
		}
	}
	say(w.net[environment.Services], env.Len(environment.Services)+w.net[environment.Services], "services")
	emptied := 0
	for _, s := range slices.Sorted(maps.Keys(w.services)) {
		if env.EndpointsOf(s) > 0 {
			continue
		}
		emptied++
		stays := env.Row(environment.Name{Table: environment.Services, Key: s}, false) != nil
		if stays && !w.own[s] && len(w.gone)+len(w.edited) > 1 {
			why = append(why, fmt.Sprintf("service %s, which stays, would have no endpoints", s))
		}
	}
	say(emptied, env.WithEndpoints()+emptied, "services with endpoints")
	if len(w.services) > 1 {
		say(w.net[environment.Endpoints], env.Len(environment.Endpoints)+w.net[environment.Endpoints], "endpoints")
	}
	for _, s := range slices.SortedFunc(maps.Keys(w.by), func(a, b *environment.Shard) int { return strings.Compare(a.Name, b.Name) }) {
		why = append(why, w.ofShard(c, s, exceeded)...)
	}
	return why
}

// ofShard says what of one source's rows would go that is too much: all of it, or, where no proxy is there to lose anything, a large share.
func (w *causes) ofShard(c *Control, s *environment.Shard, exceeded func(n, whole int) bool) (why []string) {
	if n := w.of[s][environment.Endpoints]; n > 0 && c.env.LenOf(s)[environment.Endpoints] == 0 {
		why = append(why, fmt.Sprintf("plugin %s would have none of its %d %s", s.Name, n, guard.Plural("endpoint", n)))
	}
	lost, left := w.lostOf(c.env, s)
	switch {
	case lost < 1:
	case left == 0:
		why = append(why, fmt.Sprintf("plugin %s would have none of its %d %s", s.Name, lost, guard.Plural("row", lost)))
	case lost > 1 && len(c.conns) == 0 && exceeded(lost, lost+left):
		why = append(why, fmt.Sprintf("%d of %d rows of plugin %s would go", lost, lost+left, s.Name))
	}
	return why
}

// guardOf is the guard of a plugin; nil: what it takes away is let through.
func (c *Control) guardOf(name string) *guard.Guard {
	k := c.known[name]
	if k == nil || k.LossApplies {
		return nil
	}
	g := k.guard()
	return &g
}

// guard is the plugin's, or the default.
func (k *known) guard() guard.Guard {
	if k.Guard == (guard.Guard{}) {
		return guard.Default()
	}
	return k.Guard
}
