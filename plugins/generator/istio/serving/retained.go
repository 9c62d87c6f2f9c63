package serving

import (
	linked "container/list"
	"crypto/sha256"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
)

// seats are where proxies were placed that are gone, for those that come back: reading a node and
// placing it is most of what a proxy costs whose views are there. What is not up to date any more
// is computed by waves, as for those that are connected.
type seats struct {
	left *linked.List // of *connection; that which was left longest ago first
	by   map[seatKey]*linked.Element
}

// seatKey is all that a placement depends on which a proxy says.
type seatKey struct {
	node       [sha256.Size]byte
	extensions *string // the first of the list, which is one for all that have it
}

const (
	// SeatsKept and seatAge bound what is kept where views live on because others are in them.
	// Otherwise the core says, by Drop, how long.
	SeatsKept = 1000
	seatAge   = time.Minute
)

func newSeats() *seats { return &seats{left: linked.New(), by: map[seatKey]*linked.Element{}} }

func keyOf(p *sdk.Proxy) seatKey {
	k := seatKey{node: sha256.Sum256(p.Node)}
	if len(p.Extensions) > 0 {
		k.extensions = &p.Extensions[0]
	}
	return k
}

// sit gives a new connection the seat of a proxy that has said the same of itself; false: there is
// none.
func (e *Engine) sit(p *sdk.Proxy, key seatKey) bool {
	at := e.seats.by[key]
	if at == nil {
		return false
	}
	e.seats.forget(at)
	c := at.Value.(*connection)
	c.types, c.views = p.Types, map[string]uint64{}
	e.connections[p.Connection] = c
	c.id = p.Connection
	e.watch(c.root, placing{e, c})
	return true
}

// vacate keeps the seat of a connection that has ended as long as the views are there in which it
// was.
func (e *Engine) vacate(c *connection) {
	e.unwatch(c.root)
	if _, placed := c.root.Value(); !placed || e.seats.by[c.key] != nil || !e.seated(c) {
		e.remove(c)
		return
	}
	c.since = time.Now()
	e.seats.by[c.key] = e.seats.left.PushBack(c)
	e.clear(c.since)
}

// seated reports whether all views are there in which a connection was.
func (e *Engine) seated(c *connection) bool {
	for _, id := range c.views {
		if id != 0 && e.views.byID[id] == nil {
			return false
		}
	}
	return true
}

// clear removes the seats that are too many or too old.
func (e *Engine) clear(now time.Time) {
	for at := e.seats.left.Front(); at != nil; at = e.seats.left.Front() {
		c := at.Value.(*connection)
		if e.seats.left.Len() <= SeatsKept && now.Sub(c.since) < seatAge {
			return
		}
		e.seats.forget(at)
		e.remove(c)
	}
}

// empty removes the seats whose views are gone.
func (e *Engine) empty() {
	for at := e.seats.left.Front(); at != nil; {
		next := at.Next()
		if c := at.Value.(*connection); !e.seated(c) {
			e.seats.forget(at)
			e.remove(c)
		}
		at = next
	}
}

func (s *seats) forget(at *linked.Element) {
	delete(s.by, at.Value.(*connection).key)
	s.left.Remove(at)
}

// remove takes a connection out of the graph.
func (e *Engine) remove(c *connection) {
	c.root.Close()
	e.from.Placement.Proxies.Delete(c.seat)
}
