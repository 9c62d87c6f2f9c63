package xds

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/coxswain-mesh/coxswain/core/view"
	"google.golang.org/grpc/mem"
)

// memo computes what streams in the same situation share once: contents, changes and their
// fragments. It holds situations weakly: a result is let go with the first of the snapshots and
// subscriptions that it was computed from.
type memo struct {
	mu       sync.Mutex
	contents map[weakSituation]*sharedContent
	changes  map[[2]weakSituation]*sharedChange
	// common are the subscriptions that many streams had lately, kept though none has them any
	// more: if these come back while their view is there (which is not for us to say), they find
	// its fragments joined.
	common [commonKept]*subscription
	next   int
}

const commonKept = 64

type weakSituation struct {
	snapshot     weak.Pointer[view.Snapshot]
	subscription weak.Pointer[subscription]
}

type sharedContent struct {
	once sync.Once
	*content
	sotw      sharedFragments
	lifetimes lifetimes
}

type sharedChange struct {
	once sync.Once
	*change
	sotw, delta sharedFragments
	lifetimes   lifetimes
}

// sharedFragments are the encoded forms of a list of bodies. Once many streams have been sent them
// they are joined and kept: each pays for each buffer. For few they are listed anew each time: a
// copy has the size of all that they are sent, and where each stream has a situation of its own
// their lists are most of what it keeps.
type sharedFragments struct {
	// many is called when they are many; nil: nobody wants to know.
	many   func()
	uses   atomic.Int32
	dense  sync.Once
	joined mem.BufferSlice
}

// manyUses is from which use on fragments are joined.
const manyUses = 16

// of returns the fragments of bodies, which must be the same at each call.
func (f *sharedFragments) of(bodies []*view.Body, delta bool) mem.BufferSlice {
	if f.uses.Add(1) < manyUses {
		return fragments(bodies, delta)
	}
	f.dense.Do(func() {
		f.joined = joined(fragments(bodies, delta))
		if f.many != nil {
			f.many()
		}
	})
	return f.joined
}

func newMemo() *memo {
	return &memo{contents: map[weakSituation]*sharedContent{}, changes: map[[2]weakSituation]*sharedChange{}}
}

func weaken(s situation) weakSituation {
	return weakSituation{weak.Make(s.snapshot), weak.Make(s.subscription)}
}

// keeping returns what keeps the subscription of a situation in which many streams are.
func (m *memo) keeping(key weakSituation) func() {
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if s := key.subscription.Value(); s != nil && !slices.Contains(m.common[:], s) {
			m.common[m.next] = s
			m.next = (m.next + 1) % commonKept
		}
	}
}

// letGo forgets what is kept for streams that may come back.
func (m *memo) letGo() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.common[:])
}

// content spells a situation out.
func (m *memo) content(s situation) *sharedContent {
	key := weaken(s)
	m.mu.Lock()
	c := m.contents[key]
	if c == nil {
		c = &sharedContent{sotw: sharedFragments{many: m.keeping(key)}}
		m.contents[key] = c
		c.lifetimes.when(s, func() { m.forgetContent(key) })
	}
	m.mu.Unlock()
	c.once.Do(func() { c.content = resolve(s) })
	return c
}

// change returns what leads from one situation to another.
func (m *memo) change(from, to situation) *sharedChange {
	key := [2]weakSituation{weaken(from), weaken(to)}
	m.mu.Lock()
	c := m.changes[key]
	if c == nil {
		many := m.keeping(key[1])
		c = &sharedChange{sotw: sharedFragments{many: many}, delta: sharedFragments{many: many}}
		m.changes[key] = c
		c.lifetimes.when(from, func() { m.forgetChange(key) })
		c.lifetimes.when(to, func() { m.forgetChange(key) })
	}
	m.mu.Unlock()
	c.once.Do(func() {
		if from == to {
			c.change = &change{}
			return
		}
		c.change = compare(m.content(from).content, m.content(to).content, to.subscription)
	})
	return c
}

// lifetimes are the cleanups of a result, one for each snapshot and subscription that it was
// computed from.
type lifetimes []runtime.Cleanup

// when calls f when either half of a situation is no longer used. f must not hold the situation.
func (l *lifetimes) when(s situation, f func()) {
	run := func(f func()) { f() }
	if s.snapshot != nil {
		*l = append(*l, runtime.AddCleanup(s.snapshot, run, f))
	}
	if s.subscription != nil {
		*l = append(*l, runtime.AddCleanup(s.subscription, run, f))
	}
}

// stop takes back the cleanups that have not run: what lives on must not carry one for each result
// that has ended.
func (l *lifetimes) stop(of ...weakSituation) {
	var alive []any
	for _, s := range of {
		alive = append(alive, s.snapshot.Value(), s.subscription.Value())
	}
	for _, c := range *l {
		c.Stop() // of what is gone: no effect
	}
	runtime.KeepAlive(alive) // Stop asks for it
	*l = nil
}

func (m *memo) forgetContent(key weakSituation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.contents[key]; c != nil {
		delete(m.contents, key)
		c.lifetimes.stop(key)
	}
}

func (m *memo) forgetChange(key [2]weakSituation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.changes[key]; c != nil {
		delete(m.changes, key)
		c.lifetimes.stop(key[:]...)
	}
}

// size returns the numbers of contents and changes that are held.
func (m *memo) size() (contents, changes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.contents), len(m.changes)
}
