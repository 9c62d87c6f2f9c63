package control

import (
	"container/list"
	"hash/maphash"
	"math"
	"time"

	"github.com/coxswain-mesh/coxswain/core/view"
)

// Retention says how long views outlive the connections that were in them: proxies that come back (a balancer failed over, a network was away) find
// them as they would be had they stayed. Meanwhile revisions reach these views as they reach others.
type Retention struct {
	// For is how long what a connection wanted stays wanted after it left; 0: not at all.
	For time.Duration
	// Bytes bounds what is kept so; beyond it what was left longest ago goes first. 0: no bound.
	Bytes int64
}

// What a name and a view cost beside the resource, in the core and in a generator together: sets, wishes, nodes of a graph.
const (
	nameCost = 512
	viewCost = 4 << 10
)

// left is what connections that left wanted of views. It is a wish like theirs, so that no generator notices that they went.
type left struct {
	seed   maphash.Seed
	wishes *list.List // of *leftWish; that which was left longest ago first
	byKey  map[wishKey]*list.Element
	// weighed are the snapshots of views that nobody is in, as they are counted; sets are those of all of these, once each.
	weighed map[*view.View]*view.Snapshot
	sets    map[*view.Set]int
	bytes   int64
	// short is until when what nobody uses goes soon: memory is short.
	short time.Time
}

// wishKey stands for a view and what was wanted of it: equal lists are kept once.
type wishKey struct {
	view     *view.View
	wildcard bool
	names    uint64
}

type leftWish struct {
	key     wishKey
	session *session
	sub     subscription
	since   time.Time
	bytes   int64
}

func newLeft() *left {
	return &left{
		seed: maphash.MakeSeed(), wishes: list.New(), byKey: map[wishKey]*list.Element{},
		weighed: map[*view.View]*view.Snapshot{}, sets: map[*view.Set]int{},
	}
}

// depart takes a connection that has ended out of a view. What it wanted stays wanted for a while, and if that was nothing the view stays a view: a generator
// that forgot it would have to place anew whoever comes back.
func (c *Control) depart(conn *connection, typeURL string, v *view.View) {
	s, sub := conn.home[typeURL], conn.subs[typeURL]
	if !c.retains(conn, s, typeURL) || c.left.renew(v, sub) {
		c.unwant(s, v, sub, true)
		return
	}
	v.Connections--
	c.left.keep(s, v, sub)
}

// retains reports whether views of a type outlive their connections. Secrets don't, nor does what is not served any more.
func (c *Control) retains(conn *connection, s *session, typeURL string) bool {
	return c.cfg.Retention.For > 0 && s != nil && c.sessions[s.Name] == s && !c.traits(conn, typeURL).Sensitive
}

// expire lets go of what was left too long ago, or is too much.
func (c *Control) expire(now time.Time, at func(time.Time)) {
	limits := c.cfg.Retention
	for e := c.left.wishes.Front(); e != nil; e = c.left.wishes.Front() {
		w := e.Value.(*leftWish)
		if end := w.since.Add(limits.For); end.After(now) && (limits.Bytes <= 0 || c.left.bytes <= limits.Bytes) {
			at(end)
			break
		}
		c.forgo(e)
	}
	c.cfg.Metrics.Retained(len(c.left.weighed), c.left.bytes)
}

// LetGo lets go of so many bytes of what was left, or a little more, the oldest first, and for a while of what nobody uses without waiting for those who may be
// back soon: memory is short.
func (c *Control) LetGo(bytes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for most := c.left.bytes - int64(min(bytes, math.MaxInt64)); c.left.bytes > most && c.left.wishes.Len() > 0; {
		c.forgo(c.left.wishes.Front())
	}
	c.left.short = now.Add(tidyAfter)
	c.schedule(now)
}

// forgo lets go of a wish.
func (c *Control) forgo(e *list.Element) {
	w := e.Value.(*leftWish)
	c.left.remove(e)
	c.unwant(w.session, w.key.view, w.sub, false)
}

func (l *left) key(v *view.View, sub subscription) wishKey {
	var h maphash.Hash
	h.SetSeed(l.seed)
	for _, n := range sub.names {
		_, _ = h.WriteString(n)
		_ = h.WriteByte(0)
	}
	return wishKey{v, sub.wildcard, h.Sum64()}
}

// renew reports whether an equal wish is kept; it counts as left now.
func (l *left) renew(v *view.View, sub subscription) bool {
	e := l.byKey[l.key(v, sub)]
	if e == nil {
		return false
	}
	e.Value.(*leftWish).since = time.Now()
	l.wishes.MoveToBack(e)
	return true
}

// keep takes a connection's wish over.
func (l *left) keep(s *session, v *view.View, sub subscription) {
	w := &leftWish{key: l.key(v, sub), session: s, sub: sub, since: time.Now()}
	for _, n := range sub.names {
		w.bytes += nameCost + int64(len(n))
	}
	if v.Connections > 0 { // what of a view in use only this wish keeps
		w.bytes += v.Alone(sub.names)
	}
	l.byKey[w.key] = l.wishes.PushBack(w)
	l.bytes += w.bytes
	v.Left++
	l.weigh(v)
}

func (l *left) remove(e *list.Element) {
	w := l.wishes.Remove(e).(*leftWish)
	delete(l.byKey, w.key)
	l.bytes -= w.bytes
	w.key.view.Left--
	l.weigh(w.key.view)
}

// forget lets go of all wishes of a session that has ended.
func (l *left) forget(s *session) {
	for e := l.wishes.Front(); e != nil; {
		next := e.Next()
		if e.Value.(*leftWish).session == s {
			l.remove(e)
		}
		e = next
	}
}

// weigh counts views as they are now: only those that nobody is in, and of these a set that several share once.
func (l *left) weigh(views ...*view.View) {
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

func (l *left) count(s *view.Snapshot, by int) {
	for set := range s.Sets() {
		had := l.sets[set]
		l.sets[set] = had + by
		switch {
		case had == 0:
			l.bytes += l.weight(set)
		case had+by == 0:
			l.bytes -= l.weight(set)
			delete(l.sets, set)
		}
	}
}

func (l *left) weight(set *view.Set) int64 { return int64(set.Bytes()) + nameCost*int64(set.Len()) }
