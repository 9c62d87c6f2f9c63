package serving

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/placement"
)

// TidyAfter is how long views that no connection is in, and bodies that no view names, are kept
// where no revision comes that would do away with them: proxies that are back soon find them. Where
// memory is short they go soon.
const TidyAfter, TidySoon = 10 * time.Second, 500 * time.Millisecond

// depart takes a connection that has ended out of a view. What it wanted stays wanted for a while,
// and if that was nothing the view stays a view: a generator that forgot it would have to place
// anew whoever comes back.
func (pl *Placer) depart(conn *state.Connection, typeURL string, at placement.Place[*state.Session]) {
	s, v, sub, now := at.Session, at.View, conn.Subs[typeURL], pl.state.Clock.Now()
	if !pl.retains(conn, s, typeURL) || pl.state.Connections.Left.Renew(v, sub, now) {
		pl.unwant(s, v, sub, true)
		return
	}
	v.Connections--
	pl.state.Connections.Left.Keep(s, v, sub, now)
}

// retains reports whether views of a type outlive their connections. Secrets don't, nor does what
// is not served any more.
func (pl *Placer) retains(conn *state.Connection, s *state.Session, typeURL string) bool {
	return pl.retention.For > 0 && s != nil && pl.state.Roster.Session(s.Name()) == s && !pl.state.Roster.Traits(conn.Generators[typeURL], typeURL).Sensitive
}

// Expire lets go of what was left too long ago, or is too much.
func (pl *Placer) Expire(now time.Time, at func(time.Time)) {
	w, again := pl.state.Connections.Left.Expired(pl.retention, now)
	for ; w != nil; w, again = pl.state.Connections.Left.Expired(pl.retention, now) {
		pl.forgo(w)
	}
	at(again)
	pl.state.Metrics.Retained(pl.state.Connections.Left.Kept())
}

// LetGo lets go of so many bytes of what was left, and reports whether there was any.
func (pl *Placer) LetGo(bytes uint64) (any bool) {
	most := pl.state.Connections.Left.But(bytes)
	for w := pl.state.Connections.Left.Oldest(most); w != nil; w = pl.state.Connections.Left.Oldest(most) {
		pl.forgo(w)
		any = true
	}
	pl.state.Connections.Left.Short(pl.state.Clock.Now().Add(TidyAfter))
	return any
}

// forgo takes back what was kept of a connection's wish.
func (pl *Placer) forgo(w *placement.LeftWish[*state.Session]) {
	pl.unwant(w.Session, w.View, w.Wish, false)
}
