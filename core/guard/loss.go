package guard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/view"
)

// Stream is a connection, as far as it matters here what it is shown.
type Stream interface {
	comparable
	// Visible is what it has of a type; nil: nothing was shown to it yet.
	Visible(typeURL string) *view.Snapshot
	// Wish is what it asks for of a type, Label what its view of the type is called.
	Wish(typeURL string) placement.Wish
	Label(typeURL string) string
	// After is the type whose resources name those of this one; empty: there is none.
	After(typeURL string) string
	// Generator is the plugin that serves the type to it.
	Generator(typeURL string) string
}

// Shown is what connections are to get next of each type.
type Shown[C Stream] map[C]map[string]*view.Snapshot

// Put notes what a connection is to get of a type; nil: nothing any more.
func (n Shown[C]) Put(conn C, typeURL string, snap *view.Snapshot) {
	if n[conn] == nil {
		n[conn] = map[string]*view.Snapshot{}
	}
	n[conn][typeURL] = snap
}

// trade is what connections that want the same have of a type now, and would have.
type trade struct {
	typeURL  string
	old, now *view.Snapshot
	all      bool
	first    *string // of the list of names, which connections share
	names    int
}

// taken is what a trade takes from each of its connections.
type taken struct {
	trade
	label string
	// before is the weight of all that they have, lost of it that which would go and that nothing
	// new makes up for.
	before, lost int
	gone         []string
	// absent is what of lost is of names that are not there any more.
	absent int
}

// Loss is what connections would lose of a type.
type Loss[C Stream] struct {
	taken
	conns []C
	// with is the loss of the type whose resources name these.
	with *taken
	// deadEnds are clusters that go and are still led to.
	deadEnds []string
}

// Losses returns what connections would lose that are shown this next, of those types of which any
// would lose something.
func Losses[C Stream](next Shown[C]) []*Loss[C] {
	found := map[trade]*taken{}
	of := func(conn C, url string) *taken {
		snap, ok := next[conn][url]
		if old := conn.Visible(url); ok && old != nil && old != snap {
			return take(found, conn, trade{typeURL: url, old: old, now: snap})
		}
		return nil
	}
	type pair struct{ own, with *taken }
	pairs := map[pair]*Loss[C]{}
	for conn, types := range next {
		for url := range types {
			l := of(conn, url)
			if l == nil || l.lost <= 0 {
				continue
			}
			p := pair{own: l, with: of(conn, conn.After(url))}
			if pairs[p] == nil {
				pairs[p] = &Loss[C]{taken: *l, with: p.with}
			}
			pairs[p].conns = append(pairs[p].conns, conn)
		}
	}
	var all []*Loss[C]
	for _, l := range pairs {
		if l.excuse(); l.lost > 0 {
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b *Loss[C]) int {
		return cmp.Or(cmp.Compare(a.typeURL, b.typeURL), cmp.Compare(a.label, b.label), cmp.Compare(a.lost, b.lost))
	})
	return all
}

// excuse takes out names that are not there any more because others are named instead: a cluster or
// a listener of another name came for the one that named them.
func (l *Loss[C]) excuse() {
	if l.with != nil && len(l.with.gone) > 0 && l.with.lost <= 0 {
		l.lost -= l.absent
	}
}

func take[C Stream](found map[trade]*taken, conn C, t trade) *taken {
	wish := conn.Wish(t.typeURL)
	if t.all, t.names = wish.Wildcard, len(wish.Names); t.names > 0 {
		t.first = &wish.Names[0]
	}
	if l := found[t]; l != nil {
		return l
	}
	l := &taken{trade: t, label: conn.Label(t.typeURL)}
	found[t] = l
	wants := func(name string) bool {
		if wish.Wildcard {
			return true
		}
		_, ok := slices.BinarySearch(wish.Names, name)
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
		l.before = l.whole(wish)
	}
	return l
}

// weigh adds what goes or comes with a name.
func (l *taken) weigh(name string) {
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
func (l *taken) whole(wish placement.Wish) (weight int) {
	if wish.Wildcard {
		for _, b := range l.old.Bodies() {
			weight += view.Weight(l.typeURL, b)
		}
		return weight
	}
	for _, b := range l.old.Each(wish.Names) {
		weight += view.Weight(l.typeURL, b)
	}
	return weight
}

// tooMuch reports whether that is more than may go unasked. By a single thing of several, that is
// all of a type for those who want all of it: who asks for names may want just that one.
func (l *taken) tooMuch(single bool, exceeded func(n, whole int) bool) bool {
	if single {
		return l.all && l.lost == l.before
	}
	return l.lost == l.before || l.lost >= 2 && exceeded(l.lost, l.before)
}

// Strictly returns those losses of which nobody asked for anything to go, as by a swap: all of
// something, a share of it, one of two by half, or clusters that routes lead to still.
func Strictly[C Stream](next Shown[C], share Share) (heavy []*Loss[C]) {
	for _, l := range Losses(next) {
		if l.lost == l.before || share.Reached(l.lost, l.before) || l.leavesDeadEnds(next) {
			heavy = append(heavy, l)
		}
	}
	return heavy
}

// String says what goes, of how much, and from how many.
func (l *Loss[C]) String() string {
	if len(l.deadEnds) > 0 {
		return l.text() + "; routes or listeners that stay lead to " + Some(l.deadEnds)
	}
	return l.text()
}

func (l *Loss[C]) text() string {
	noun := map[string]string{"ClusterLoadAssignment": "service with endpoints", "RouteConfiguration": "virtual host"}[ShortType(l.typeURL)]
	slices.Sort(l.gone)
	of := cmp.Or(noun, ShortType(l.typeURL))
	return fmt.Sprintf("%d of %d %s would go from %s (view %s): %s",
		l.lost, l.before,
		strings.Replace(Plural(of, l.before), "service with endpoints", "services with endpoints", 1),
		Proxies(len(l.conns)), l.label, Some(l.gone))
}

// Told says the greatest of several losses, and how many others there are: each proxy may have one
// of its own.
func Told[C Stream](losses []*Loss[C]) (lines []string) {
	most := slices.SortedStableFunc(slices.Values(losses), func(a, b *Loss[C]) int { return b.lost*len(b.conns) - a.lost*len(a.conns) })
	for _, l := range most[:min(len(most), Examples)] {
		lines = append(lines, l.String())
	}
	if more := len(most) - Examples; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more such losses", more))
	}
	return lines
}

// Undone says which resources would be others for connections that are shown this next: be it a
// header or a filter that protects, it is what a patch is for.
func Undone[C Stream](next Shown[C]) (why []string) {
	type change struct {
		names   map[string]bool
		proxies int
	}
	changes := map[string]*change{}
	found := map[[2]*view.Snapshot][]string{}
	for conn, types := range next {
		for url, now := range types {
			old := conn.Visible(url)
			pair := [2]*view.Snapshot{old, now}
			names, known := found[pair]
			if !known {
				names = differing(old, now)
				found[pair] = names
			}
			if len(names) == 0 {
				continue
			}
			if changes[url] == nil {
				changes[url] = &change{names: map[string]bool{}}
			}
			changes[url].proxies++
			for _, name := range names {
				changes[url].names[name] = true
			}
		}
	}
	for _, url := range slices.Sorted(maps.Keys(changes)) {
		names := slices.Sorted(maps.Keys(changes[url].names))
		what := fmt.Sprintf("%d %s would go from %s", len(names), Plural(ShortType(url), len(names)), Proxies(changes[url].proxies))
		why = append(why, "what it makes of "+what+": "+Some(names))
	}
	return why
}

// differing are the names of resources that two snapshots have otherwise.
func differing(old, now *view.Snapshot) (names []string) {
	if old == nil || old == now {
		return nil
	}
	for name := range view.Between(old, now) {
		if !view.Equal(old.Get(name), now.Get(name)) {
			names = append(names, name)
		}
	}
	return names
}
