package control

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/placement"
)

// depart takes a connection that has ended out of a view. What it wanted stays wanted for a while,
// and if that was nothing the view stays a view: a generator that forgot it would have to place
// anew whoever comes back.
func (c *Control) depart(conn *connection, typeURL string, at placement.Place[*session]) {
	s, v, sub, now := at.Session, at.View, conn.subs[typeURL], c.clock.Now()
	if !c.retains(conn, s, typeURL) || c.conns.left.Renew(v, sub, now) {
		c.unwant(s, v, sub, true)
		return
	}
	v.Connections--
	c.conns.left.Keep(s, v, sub, now)
}

// retains reports whether views of a type outlive their connections. Secrets don't, nor does what
// is not served any more.
func (c *Control) retains(conn *connection, s *session, typeURL string) bool {
	return c.cfg.Retention.For > 0 && s != nil && c.roster.session(s.Name) == s && !c.roster.traits(conn.generator[typeURL], typeURL).Sensitive
}

// expire lets go of what was left too long ago, or is too much.
func (c *Control) expire(now time.Time, at func(time.Time)) {
	w, again := c.conns.left.Expired(c.cfg.Retention, now)
	for ; w != nil; w, again = c.conns.left.Expired(c.cfg.Retention, now) {
		c.forgo(w)
	}
	at(again)
	c.cfg.Metrics.Retained(c.conns.left.Kept())
}

// LetGo lets go of so many bytes of what was left, or a little more, the oldest first, and for a
// while of what nobody uses without waiting for those who may be back soon: memory is short.
func (c *Control) LetGo(bytes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, most := c.clock.Now(), c.conns.left.But(bytes)
	for w := c.conns.left.Oldest(most); w != nil; w = c.conns.left.Oldest(most) {
		c.forgo(w)
	}
	c.conns.left.Short(now.Add(tidyAfter))
	c.schedule(now)
}

// forgo takes back what was kept of a connection's wish.
func (c *Control) forgo(w *placement.LeftWish[*session]) { c.unwant(w.Session, w.View, w.Wish, false) }
