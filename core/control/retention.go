package control

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/state"

	"github.com/coxswain-mesh/coxswain/core/placement"
)

// depart takes a connection that has ended out of a view. What it wanted stays wanted for a while,
// and if that was nothing the view stays a view: a generator that forgot it would have to place
// anew whoever comes back.
func (pl *placer) depart(conn *state.Connection, typeURL string, at placement.Place[*state.Session]) {
	s, v, sub, now := at.Session, at.View, conn.Subs[typeURL], pl.clock.Now()
	if !pl.retains(conn, s, typeURL) || pl.conns.Left.Renew(v, sub, now) {
		pl.unwant(s, v, sub, true)
		return
	}
	v.Connections--
	pl.conns.Left.Keep(s, v, sub, now)
}

// retains reports whether views of a type outlive their connections. Secrets don't, nor does what
// is not served any more.
func (pl *placer) retains(conn *state.Connection, s *state.Session, typeURL string) bool {
	return pl.retention.For > 0 && s != nil && pl.roster.Session(s.Name()) == s && !pl.roster.Traits(conn.Generators[typeURL], typeURL).Sensitive
}

// expire lets go of what was left too long ago, or is too much.
func (pl *placer) expire(now time.Time, at func(time.Time)) {
	w, again := pl.conns.Left.Expired(pl.retention, now)
	for ; w != nil; w, again = pl.conns.Left.Expired(pl.retention, now) {
		pl.forgo(w)
	}
	at(again)
	pl.metrics.Retained(pl.conns.Left.Kept())
}

// LetGo lets go of so many bytes of what was left, or a little more, the oldest first, and for a
// while of what nobody uses without waiting for those who may be back soon: memory is short.
func (c *Control) LetGo(bytes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, most := c.state.Clock.Now(), c.state.Connections.Left.But(bytes)
	for w := c.state.Connections.Left.Oldest(most); w != nil; w = c.state.Connections.Left.Oldest(most) {
		c.serving.Placer.forgo(w)
	}
	c.state.Connections.Left.Short(now.Add(tidyAfter))
	c.schedule(now)
}

// forgo takes back what was kept of a connection's wish.
func (pl *placer) forgo(w *placement.LeftWish[*state.Session]) {
	pl.unwant(w.Session, w.View, w.Wish, false)
}
