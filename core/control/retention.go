package control

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/placement"
)

// depart takes a connection that has ended out of a view. What it wanted stays wanted for a while,
// and if that was nothing the view stays a view: a generator that forgot it would have to place
// anew whoever comes back.
func (pl *placer) depart(conn *connection, typeURL string, at placement.Place[*session]) {
	s, v, sub, now := at.Session, at.View, conn.subs[typeURL], pl.clock.Now()
	if !pl.retains(conn, s, typeURL) || pl.conns.left.Renew(v, sub, now) {
		pl.unwant(s, v, sub, true)
		return
	}
	v.Connections--
	pl.conns.left.Keep(s, v, sub, now)
}

// retains reports whether views of a type outlive their connections. Secrets don't, nor does what
// is not served any more.
func (pl *placer) retains(conn *connection, s *session, typeURL string) bool {
	return pl.retention.For > 0 && s != nil && pl.roster.session(s.Name()) == s && !pl.roster.traits(conn.generator[typeURL], typeURL).Sensitive
}

// expire lets go of what was left too long ago, or is too much.
func (pl *placer) expire(now time.Time, at func(time.Time)) {
	w, again := pl.conns.left.Expired(pl.retention, now)
	for ; w != nil; w, again = pl.conns.left.Expired(pl.retention, now) {
		pl.forgo(w)
	}
	at(again)
	pl.metrics.Retained(pl.conns.left.Kept())
}

// LetGo lets go of so many bytes of what was left, or a little more, the oldest first, and for a
// while of what nobody uses without waiting for those who may be back soon: memory is short.
func (c *Control) LetGo(bytes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, most := c.clock.Now(), c.conns.left.But(bytes)
	for w := c.conns.left.Oldest(most); w != nil; w = c.conns.left.Oldest(most) {
		c.placer.forgo(w)
	}
	c.conns.left.Short(now.Add(tidyAfter))
	c.schedule(now)
}

// forgo takes back what was kept of a connection's wish.
func (pl *placer) forgo(w *placement.LeftWish[*session]) { pl.unwant(w.Session, w.View, w.Wish, false) }
