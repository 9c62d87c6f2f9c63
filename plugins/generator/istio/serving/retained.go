package serving

import (
	linked "container/list"
	"crypto/sha256"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
)

// retained are connections that have ended, for proxies that come back: reading a node and
// placing it is most of what a proxy costs whose views are there. What is not up to date any more
// is computed by waves, as for those that are connected.
type retained struct {
	left *linked.List // of *connection; that which was left longest ago first
	by   map[proxyKey]*linked.Element
}

// proxyKey is all that a placement depends on which a proxy says.
type proxyKey struct {
	node       [sha256.Size]byte
	extensions *string // the first of the list, which is one for all that have it
}

const (
	// MostRetained and retainedFor bound what is kept where views live on because others are in
	// them. Otherwise the core says, by Drop, how long.
	MostRetained = 1000
	retainedFor  = time.Minute
)

func newRetained() *retained {
	return &retained{left: linked.New(), by: map[proxyKey]*linked.Element{}}
}

func keyOf(p *sdk.Proxy) proxyKey {
	k := proxyKey{node: sha256.Sum256(p.Node)}
	if len(p.Extensions) > 0 {
		k.extensions = &p.Extensions[0]
	}
	return k
}

// resume gives a new connection the place of a proxy that has said the same of itself; false: there
// is none.
func (e *Engine) resume(p *sdk.Proxy, key proxyKey) bool {
	at := e.retained.by[key]
	if at == nil {
		return false
	}
	e.retained.forget(at)
	c := at.Value.(*connection)
	c.types, c.views = p.Types, map[string]uint64{}
	e.connections[p.Connection] = c
	c.id = p.Connection
	e.watch(c.root, placing{e, c})
	return true
}

// retain keeps a connection that has ended as long as the views are there in which it
// was.
func (e *Engine) retain(c *connection) {
	e.unwatch(c.root)
	if _, placed := c.root.Value(); !placed || e.retained.by[c.key] != nil || !e.intact(c) {
		e.remove(c)
		return
	}
	c.since = time.Now()
	e.retained.by[c.key] = e.retained.left.PushBack(c)
	e.clear(c.since)
}

// intact reports whether all views are there in which a connection was.
func (e *Engine) intact(c *connection) bool {
	for _, id := range c.views {
		if id != 0 && e.views.byID[id] == nil {
			return false
		}
	}
	return true
}

// clear removes those that are too many or too old.
func (e *Engine) clear(now time.Time) {
	for at := e.retained.left.Front(); at != nil; at = e.retained.left.Front() {
		c := at.Value.(*connection)
		if e.retained.left.Len() <= MostRetained && now.Sub(c.since) < retainedFor {
			return
		}
		e.retained.forget(at)
		e.remove(c)
	}
}

// empty removes those whose views are gone.
func (e *Engine) empty() {
	for at := e.retained.left.Front(); at != nil; {
		next := at.Next()
		if c := at.Value.(*connection); !e.intact(c) {
			e.retained.forget(at)
			e.remove(c)
		}
		at = next
	}
}

func (s *retained) forget(at *linked.Element) {
	delete(s.by, at.Value.(*connection).key)
	s.left.Remove(at)
}

// remove takes a connection out of the graph.
func (e *Engine) remove(c *connection) {
	c.root.Close()
	e.from.Placement.Proxies.Delete(c.slot)
}
