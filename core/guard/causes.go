package guard

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/environment"
)

// causes are the rows that changed since proxies had all.
type causes struct {
	// gone are rows of sources that are served no more, edited those that are others now; endpoints
	// are counted by their services.
	gone, edited []environment.UnseenRow
	// services of which endpoints went or changed, own those of which a source said so.
	services, own map[string]bool
	// any: something was there before, so that it is not all new.
	any bool
	// emptied are tables of which the last row goes.
	emptied []string
	read    map[string]bool
	// by are the shards of sources that changed something other than by adding to it, true: by
	// taking it away.
	by map[*environment.Shard]bool
	// net is how many served rows of a table there are less.
	net map[string]int
	// of is how many there are less of each shard's.
	of map[*environment.Shard]map[string]int
}

// causesOf gathers them from tables that somebody reads.
func causesOf(env *environment.Environment, read map[string]bool) *causes {
	w := &causes{
		read: read, services: map[string]bool{}, own: map[string]bool{}, by: map[*environment.Shard]bool{},
		net: map[string]int{}, of: map[*environment.Shard]map[string]int{},
	}
	seen := map[environment.Name]bool{}
	for u := range env.Unseen.Rows() {
		if !read[u.Table] {
			continue
		}
		had, has := env.Unseen.Had(u.Name), env.Committed.Row(u.Name, false) != nil
		if !seen[u.Name] {
			seen[u.Name] = true
			w.net[u.Table] += b2i(had) - b2i(has)
		}
		w.note(u, had, has)
	}
	w.net[environment.Endpoints] -= env.Unseen.Revealed()
	return w
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// lastOf are the tables of which sources took the last row away.
func (w *causes) lastOf(env *environment.Environment) (tables []string) {
	for _, u := range w.gone {
		if env.Committed.Len(u.Table) == 0 && !slices.Contains(tables, u.Table) {
			tables = append(tables, u.Table)
		}
	}
	return tables
}

func (w *causes) note(u environment.UnseenRow, had, has bool) {
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

// single reports whether all of it is one thing of several: a service, the endpoints of one, or one
// row of another kind, and not all that a source has. That is what people take away on purpose.
func (w *causes) single(env *environment.Environment) bool {
	switch {
	case len(w.edited) > 0 || len(w.gone) > 1 || w.drained(env.Tally, env.Held):
		return false
	case len(w.gone) == 0:
		return len(w.own) == 1 && env.Tally.WithEndpoints() > b2i(env.Tally.EndpointsOf(only(w.own)) > 0)
	}
	u := w.gone[0]
	return env.Committed.Len(u.Table) > 0 && (len(w.own) == 0 || len(w.own) == 1 && u.Table == environment.Services && w.own[u.Key])
}

// drained reports whether a source would have no endpoints left, or no rows at all.
func (w *causes) drained(tally *environment.Tally, held *environment.Held) bool {
	for s := range w.by {
		if lost, left := w.lostOf(tally, held, s); lost > 0 && left == 0 || w.of[s][environment.Endpoints] > 0 && tally.LenOf(s)[environment.Endpoints] == 0 {
			return true
		}
	}
	return false
}

// lostOf is how many rows less a source has of tables that somebody reads, and how many it has left
// that it doesn't say are gone.
func (w *causes) lostOf(tally *environment.Tally, held *environment.Held, s *environment.Shard) (lost, left int) {
	for _, n := range w.of[s] {
		lost += n
	}
	for table, n := range tally.LenOf(s) {
		if w.read[table] {
			left += n
		}
	}
	for u := range held.Of(s) {
		left -= b2i(w.read[u.Table] && u.Before != nil && u.Now == nil)
	}
	return lost, max(0, left)
}

// emptiesNone reports whether each service of which endpoints went still has some, and nothing else
// went or changed: nobody can lose anything.
func (w *causes) emptiesNone(tally *environment.Tally) bool {
	for s := range w.services {
		if tally.EndpointsOf(s) == 0 {
			return false
		}
	}
	return len(w.gone)+len(w.edited) == 0
}

// covered reports whether each service of which sources took endpoints away still has some, as
// where another registry has it, too.
func (w *causes) covered(tally *environment.Tally) bool {
	for s := range w.own {
		if tally.EndpointsOf(s) == 0 {
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

// rows says what of the tables would go that is too much; exceeded is the guard's word on a number
// of a whole.
func (w *causes) rows(env *environment.Environment, connected int, exceeded func(n, whole int) bool) (why []string) {
	say := func(lost, before int, what string) {
		if before > 0 && lost > 0 && (lost == before || lost >= 2 && exceeded(lost, before)) {
			why = append(why, fmt.Sprintf("%d of %d %s would go", lost, before, what))
		}
	}
	say(w.net[environment.Services], env.Committed.Len(environment.Services)+w.net[environment.Services], "services")
	emptied := 0
	for _, s := range slices.Sorted(maps.Keys(w.services)) {
		if env.Tally.EndpointsOf(s) > 0 {
			continue
		}
		emptied++
		stays := env.Committed.Row(environment.Name{Table: environment.Services, Key: s}, false) != nil
		if stays && !w.own[s] && len(w.gone)+len(w.edited) > 1 {
			why = append(why, fmt.Sprintf("service %s, which stays, would have no endpoints", s))
		}
	}
	say(emptied, env.Tally.WithEndpoints()+emptied, "services with endpoints")
	if len(w.services) > 1 {
		say(w.net[environment.Endpoints], env.Committed.Len(environment.Endpoints)+w.net[environment.Endpoints], "endpoints")
	}
	for _, s := range slices.SortedFunc(maps.Keys(w.by), func(a, b *environment.Shard) int { return strings.Compare(a.Name, b.Name) }) {
		why = append(why, w.ofShard(env.Tally, env.Held, s, connected, exceeded)...)
	}
	return why
}

// ofShard says what of one source's rows would go that is too much: all of it, or, where no proxy
// is there to lose anything, a large share.
func (w *causes) ofShard(tally *environment.Tally, held *environment.Held, s *environment.Shard, connected int,
	exceeded func(n, whole int) bool) (why []string) {
	if n := w.of[s][environment.Endpoints]; n > 0 && tally.LenOf(s)[environment.Endpoints] == 0 {
		why = append(why, fmt.Sprintf("plugin %s would have none of its %d %s", s.Name, n, Plural("endpoint", n)))
	}
	lost, left := w.lostOf(tally, held, s)
	switch {
	case lost < 1:
	case left == 0:
		why = append(why, fmt.Sprintf("plugin %s would have none of its %d %s", s.Name, lost, Plural("row", lost)))
	case lost > 1 && connected == 0 && exceeded(lost, lost+left):
		why = append(why, fmt.Sprintf("%d of %d rows of plugin %s would go", lost, lost+left, s.Name))
	}
	return why
}

// Only says what rows of tables that somebody reads would go with a plugin, as no other has them.
func Only(env *environment.Environment, shard *environment.Shard, read map[string]bool) []string {
	var parts []string
	rows := env.Pending.Shard(shard)
	for _, table := range slices.Sorted(maps.Keys(rows)) {
		if !read[table] {
			continue
		}
		beside := map[string]bool{}
		for key := range env.Committed.Beside(shard, table) {
			beside[key] = true
		}
		n := 0
		for key := range rows[table] {
			n += b2i(!beside[key])
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, Plural(table[strings.LastIndexByte(table, '/')+1:], n)))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{strings.Join(parts, ", ") + " would go with it, which no other plugin has"}
}
