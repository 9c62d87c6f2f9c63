package serving

import (
	"maps"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

const (
	// mostSaid is how much of a client's words about its health is kept.
	mostSaid = 1 << 10
	// saidPause is how often a plugin is told what one client says of its health.
	saidPause = time.Second
	// behindPause is when a plugin that is far behind is looked at again.
	behindPause = 100 * time.Millisecond
)

// Clients tells controllers that asked for it which clients are connected, and what these say of
// their health. What a plugin has not been told yet is a set of connections, not a queue: however
// often clients come, go and report, it takes no more than that.
type Clients struct {
	state *state.State
	of    map[*state.Session]*audience
}

// audience is what one session knows of clients.
type audience struct {
	ready *pb.Ready
	// owed are connections of which something may be new, told those that it knows.
	owed map[uint64]bool
	told map[uint64]*told
}

// told is what a session knows of a connection.
type told struct {
	said map[string]string
	// free is when the next of its reports may be told.
	free time.Time
}

// Connected notes that a connection has begun.
func (c *Clients) Connected(conn *state.Connection) { c.note(conn) }

// Said notes what a client says of its health.
func (c *Clients) Said(conn *state.Connection, o xds.Outcome) {
	word := budget.Clip(o.Refused, mostSaid)
	if before, known := conn.Said[o.Type]; known && before == word {
		return
	}
	conn.Says(o.Type, word)
	c.note(conn)
}

// Left notes that a connection has gone.
func (c *Clients) Left(conn *state.Connection) { c.note(conn) }

func (c *Clients) note(conn *state.Connection) {
	for _, a := range c.of {
		if a.wants(conn) && !a.owed[conn.ID] {
			a.owed[conn.ID] = true
			c.state.Course.Ring()
		}
	}
}

// wants reports whether the plugin is to know of a connection.
func (a *audience) wants(conn *state.Connection) bool {
	fields := conn.Peer.Node.GetMetadata().GetFields()
	return slices.ContainsFunc(a.ready.Clients, func(key string) bool { return key == "*" || fields[key] != nil })
}

// Tell tells what has not been told yet; at is called with when there is more.
func (c *Clients) Tell(now time.Time, at func(time.Time)) {
	for s := range c.of {
		if c.state.Roster.Session(s.Name()) != s {
			delete(c.of, s)
		}
	}
	for s := range c.state.Roster.Sessions() {
		ready := s.Plugin.Ready
		if len(ready.Clients) == 0 || !s.Kind().Answers() {
			continue
		}
		a := c.of[s]
		if a == nil {
			a = &audience{ready: ready, owed: map[uint64]bool{}, told: map[uint64]*told{}}
			for id, conn := range c.state.Connections.All {
				if a.wants(conn) {
					a.owed[id] = true
				}
			}
			c.of[s] = a
		}
		for _, id := range slices.Sorted(maps.Keys(a.owed)) {
			if s.Out.Behind() {
				at(now.Add(behindPause))
				break
			}
			if later := a.tell(s, id, c.state.Connections.All[id], now); later.IsZero() {
				delete(a.owed, id)
			} else {
				at(later)
			}
		}
	}
}

// tell tells a session what is new of a connection; nil: it has gone. What must wait is told at
// the time that it returns.
func (a *audience) tell(s *state.Session, id uint64, conn *state.Connection, now time.Time) (later time.Time) {
	t := a.told[id]
	if conn == nil {
		if t != nil {
			delete(a.told, id)
			s.Out.Call(&pb.FromCore{Detach: &pb.Detach{Connection: id}})
		}
		return later
	}
	if t == nil {
		t = &told{said: map[string]string{}}
		a.told[id] = t
		s.Out.Call(&pb.FromCore{Attach: &pb.Attach{
			Connection: id, Node: conn.Node, Identities: conn.Peer.Identities, RemoteAddress: conn.Peer.RemoteAddress,
			Since: conn.Since.UnixNano(), Plain: conn.Peer.Plain,
		}})
	}
	for _, url := range a.ready.ClientReports {
		word, any := conn.Said[url]
		if before, known := t.said[url]; !any || known && before == word {
			continue
		}
		if now.Before(t.free) {
			return t.free
		}
		t.said[url], t.free = word, now.Add(saidPause)
		s.Out.Call(&pb.FromCore{Report: &pb.Report{Connection: id, Type: url, Event: pb.ReportEventHealth, Detail: word}})
	}
	return later
}
