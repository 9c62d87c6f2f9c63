package serving

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/placement"
	"github.com/coxswain-mesh/coxswain/core/state"
)

// TidyAfter is how long views that no connection is in, and bodies that no view names, are kept
// where no revision comes that would do away with them: proxies that are back soon find them. Where
// memory is short they go soon.
const TidyAfter, TidySoon = 10 * time.Second, 500 * time.Millisecond

// depart takes a connection that has ended out of a view. What it wanted stays wanted for a while,
// and if that was nothing the view stays a view: a generator that forgot it would have to place
// anew whoever comes back.
func (pl *Placer) depart(conn *state.Connection, typeURL string, at placement.Place[*state.Session]) {
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
func (pl *Placer) retains(conn *state.Connection, s *state.Session, typeURL string) bool {
	return pl.retention.For > 0 && s != nil && pl.roster.Session(s.Name()) == s && !pl.roster.Traits(conn.Generators[typeURL], typeURL).Sensitive
}

// Expire lets go of what was left too long ago, or is too much.
func (pl *Placer) Expire(now time.Time, at func(time.Time)) {
	w, again := pl.conns.Left.Expired(pl.retention, now)
	for ; w != nil; w, again = pl.conns.Left.Expired(pl.retention, now) {
		pl.forgo(w)
	}
	at(again)
	pl.metrics.Retained(pl.conns.Left.Kept())
}

// LetGo lets go of so many bytes of what was left.
func (pl *Placer) LetGo(bytes uint64) {
	most := pl.conns.Left.But(bytes)
	for w := pl.conns.Left.Oldest(most); w != nil; w = pl.conns.Left.Oldest(most) {
		pl.forgo(w)
	}
	pl.conns.Left.Short(pl.clock.Now().Add(TidyAfter))
}

// forgo takes back what was kept of a connection's wish.
func (pl *Placer) forgo(w *placement.LeftWish[*state.Session]) {
	pl.unwant(w.Session, w.View, w.Wish, false)
}
