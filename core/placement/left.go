package placement

import (
	"container/list"
	"hash/maphash"
	"math"
	"time"

	"github.com/coxswain-mesh/coxswain/core/view"
)

// Retention says how long views outlive the connections that were in them: proxies that come back
// (a balancer failed over, a network was away) find them as they would be had they stayed.
// Meanwhile revisions reach these views as they reach others.
type Retention struct {
	// For is how long what a connection wanted stays wanted after it left; 0: not at all.
	For time.Duration
	// Bytes bounds what is kept so; beyond it what was left longest ago goes first. 0: no bound.
	Bytes int64
}

// What a name and a view cost beside the resource, in the core and in a generator together: sets,
// wishes, nodes of a graph.
const (
	nameCost = 512
	viewCost = 4 << 10
)

// Left is what connections that left wanted of views. It is a wish like theirs, so that no
// generator notices that they went. S stands for the generators' sessions.
type Left[S comparable] struct {
	seed   maphash.Seed
	wishes *list.List // of *LeftWish[S]; that which was left longest ago first
	byKey  map[wishKey]*list.Element
	// weighed are the snapshots of views that nobody is in, as they are counted; sets are those of
	// all of these, once each.
	weighed map[*view.View]*view.Snapshot
	sets    map[*view.Set]int
	bytes   int64
	// short is until when what nobody uses goes soon.
	short time.Time
}

// wishKey stands for a view and what was wanted of it: equal lists are kept once.
type wishKey struct {
	view     *view.View
	wildcard bool
	names    uint64
}

// LeftWish is what was wanted of a view of a session.
type LeftWish[S comparable] struct {
	Session S
	View    *view.View
	Wish    Wish

	key   wishKey
	since time.Time
	bytes int64
}

// NewLeft returns it where nobody has left.
func NewLeft[S comparable]() *Left[S] {
	return &Left[S]{
		seed: maphash.MakeSeed(), wishes: list.New(), byKey: map[wishKey]*list.Element{},
		weighed: map[*view.View]*view.Snapshot{}, sets: map[*view.Set]int{},
	}
}

func (l *Left[S]) key(v *view.View, w Wish) wishKey {
	var h maphash.Hash
	h.SetSeed(l.seed)
	for _, n := range w.Names {
		_, _ = h.WriteString(n)
		_ = h.WriteByte(0)
	}
	return wishKey{v, w.Wildcard, h.Sum64()}
}

// Renew reports whether an equal wish is kept; it counts as left now.
func (l *Left[S]) Renew(v *view.View, w Wish, now time.Time) bool {
	e := l.byKey[l.key(v, w)]
	if e == nil {
		return false
	}
	e.Value.(*LeftWish[S]).since = now
	l.wishes.MoveToBack(e)
	return true
}

// Keep takes the wish of a connection over that is in the view no more.
func (l *Left[S]) Keep(s S, v *view.View, w Wish, now time.Time) {
	x := &LeftWish[S]{Session: s, View: v, Wish: w, key: l.key(v, w), since: now}
	for _, n := range w.Names {
		x.bytes += nameCost + int64(len(n))
	}
	if v.Connections > 0 { // what of a view in use only this wish keeps
		x.bytes += v.Alone(w.Names)
	}
	l.byKey[x.key] = l.wishes.PushBack(x)
	l.bytes += x.bytes
	v.Left++
	l.Weigh(v)
}

// Expired takes out the oldest wish if it was left too long ago, or if what is kept is too much;
// whoever calls takes it back from the view. nil: there is none, and again is when to look again;
// the zero time: nothing is kept.
func (l *Left[S]) Expired(r Retention, now time.Time) (w *LeftWish[S], again time.Time) {
	e := l.wishes.Front()
	if e == nil {
		return nil, time.Time{}
	}
	if end := e.Value.(*LeftWish[S]).since.Add(r.For); end.After(now) && (r.Bytes <= 0 || l.bytes <= r.Bytes) {
		return nil, end
	}
	return l.remove(e), time.Time{}
}

// Oldest takes out the oldest wish if more than so many bytes are kept; nil: no more are.
func (l *Left[S]) Oldest(most int64) *LeftWish[S] {
	if l.bytes <= most || l.wishes.Len() == 0 {
		return nil
	}
	return l.remove(l.wishes.Front())
}

// Short notes that memory is short, until a time: what nobody uses goes soon, without waiting for
// those who may be back.
func (l *Left[S]) Short(until time.Time) { l.short = until }

// IsShort reports whether memory is short.
func (l *Left[S]) IsShort(now time.Time) bool { return l.short.After(now) }

// But is how many bytes are kept, less so many.
func (l *Left[S]) But(bytes uint64) int64 { return l.bytes - int64(min(bytes, math.MaxInt64)) }

func (l *Left[S]) remove(e *list.Element) *LeftWish[S] {
	w := l.wishes.Remove(e).(*LeftWish[S])
	delete(l.byKey, w.key)
	l.bytes -= w.bytes
	w.View.Left--
	l.Weigh(w.View)
	return w
}

// Forget lets go of all wishes of a session that has ended.
func (l *Left[S]) Forget(s S) {
	for e := l.wishes.Front(); e != nil; {
		next := e.Next()
		if e.Value.(*LeftWish[S]).Session == s {
			l.remove(e)
		}
		e = next
	}
}

// Weigh counts views as they are now: only those that nobody is in, and of these a set that several
// share once.
func (l *Left[S]) Weigh(views ...*view.View) {
	for _, v := range views {
		var now *view.Snapshot
		if v.Connections == 0 && v.Left > 0 {
			now = v.Snapshot()
		}
		before, counted := l.weighed[v]
		if before == now {
			continue
		}
		if counted {
			l.bytes -= viewCost
			l.count(before, -1)
			delete(l.weighed, v)
		}
		if now != nil {
			l.bytes += viewCost
			l.count(now, 1)
			l.weighed[v] = now
		}
	}
}

func (l *Left[S]) count(s *view.Snapshot, by int) {
	for set := range s.Sets() {
		had := l.sets[set]
		l.sets[set] = had + by
		switch {
		case had == 0:
			l.bytes += weight(set)
		case had+by == 0:
			l.bytes -= weight(set)
			delete(l.sets, set)
		}
	}
}

func weight(set *view.Set) int64 { return int64(set.Bytes()) + nameCost*int64(set.Len()) }

// Kept is how many views are kept though nobody is in them, and how many bytes count for all that
// is kept.
func (l *Left[S]) Kept() (views int, bytes int64) { return len(l.weighed), l.bytes }
