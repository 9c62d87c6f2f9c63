package control

import (
	"cmp"
	"net"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// New connections, and names that are asked for the first time, are work that nobody waits for but who asks. A generator is given it in small
// pieces, of each peer and each of its connections in turn, and never more than it does in a moment: so a state, an edit of what others
// have, waits no longer than that, however much somebody asks for.

const (
	// inHand is how much work a generator may have in hand, a piece how much of it one message may be.
	inHand = 50 * time.Millisecond
	piece  = inHand / 2
	// firstCost is what a piece of work is taken to cost before it was measured, a name a fiftieth of that.
	firstCost = 5 * time.Millisecond
	// leastCost is what a piece, or a name, is taken to cost at least, and mostPiece the most names of one: an answer may come sooner than it is made.
	leastCost = 20 * time.Microsecond
	mostPiece = 1024
	// pieceLate is when a piece that is not answered (as one that failed isn't) is not waited for any more.
	pieceLate = 5 * time.Second
)

// turns are what connections wait for, of one generator.
type turns struct {
	peers  []*peerTurns
	byPeer map[string]*peerTurns
	byConn map[*connection]*connTurns
	// pending is what was not asked for yet, by view.
	pending map[*view.View]*pending
	// open is what the generator has in hand, in order.
	open []openPiece
	last time.Time // when the last piece was answered
	// costs are what pieces cost, by what they are; of a name where it is of names.
	costs map[string]time.Duration
}

// pending is what is wanted of a view and not asked for yet.
type pending struct {
	all   bool
	names map[string]bool
}

// peerTurns are the connections of one peer, connTurns what one waits for.
type peerTurns struct {
	peer  string
	conns []*connTurns
}

type connTurns struct {
	of     *peerTurns
	conn   *connection
	attach bool
	views  []*viewTurn
}

// viewTurn is what a connection wants of a view: those of the names that are pending, from a place on.
type viewTurn struct {
	view *view.View
	sub  subscription
	at   int
}

// openPiece is a piece of work that a generator has in hand.
type openPiece struct {
	attach uint64 // a connection
	want   uint64 // Want.id
	what   string
	names  int
	sent   time.Time
}

func newTurns() *turns {
	return &turns{
		byPeer: map[string]*peerTurns{}, byConn: map[*connection]*connTurns{}, pending: map[*view.View]*pending{}, costs: map[string]time.Duration{},
	}
}

// idle reports whether nothing is left to be asked for.
func (t *turns) idle() bool { return len(t.peers) == 0 }

// peerKey is whose turn a connection's is: an identity's, if it has one, otherwise an address's.
func peerKey(conn *connection) string {
	if len(conn.peer.Identities) > 0 {
		return conn.peer.Identities[0]
	}
	host, _, err := net.SplitHostPort(conn.peer.RemoteAddress)
	if err != nil {
		return conn.peer.RemoteAddress
	}
	return host
}

// of returns a connection's turns, the last of its peer's if it had none.
func (t *turns) of(conn *connection) *connTurns {
	if x := t.byConn[conn]; x != nil {
		return x
	}
	key := peerKey(conn)
	p := t.byPeer[key]
	if p == nil {
		p = &peerTurns{peer: key}
		t.byPeer[key] = p
		t.peers = append(t.peers, p)
	}
	x := &connTurns{conn: conn, of: p}
	t.byConn[conn] = x
	p.conns = append(p.conns, x)
	return x
}

// enlist puts a connection's attach among its turns.
func (t *turns) enlist(conn *connection) { t.of(conn).attach = true }

// wish notes that a view's content is wanted for the first time (all, fresh), by a connection among others. What others wait for already the
// connection gets in its own turn, too.
func (t *turns) wish(conn *connection, v *view.View, sub subscription, all bool, fresh []string) {
	p := t.pending[v]
	if p == nil {
		if !all && len(fresh) == 0 {
			return
		}
		p = &pending{names: map[string]bool{}}
		t.pending[v] = p
	}
	p.all = p.all || all
	for _, n := range fresh {
		p.names[n] = true
	}
	x := t.of(conn)
	for _, w := range x.views {
		if w.view == v {
			w.sub, w.at = sub, 0
			return
		}
	}
	x.views = append(x.views, &viewTurn{view: v, sub: sub})
}

// drop takes back what nobody wants any more, and returns what the generator was asked for and is to be told.
func (t *turns) drop(v *view.View, all bool, gone []string) (tellAll bool, tell []string) {
	p := t.pending[v]
	if p == nil {
		return all, gone
	}
	if all && p.all {
		p.all, all = false, false
	}
	for _, n := range gone {
		if p.names[n] {
			delete(p.names, n)
		} else {
			tell = append(tell, n)
		}
	}
	t.settled(v, p)
	return all, tell
}

// take takes out of what is pending those names that must not wait.
func (t *turns) take(v *view.View, sub subscription, promised func(name string) bool) (all bool, names []string) {
	p := t.pending[v]
	if p == nil {
		return false, nil
	}
	if sub.wildcard && p.all {
		p.all, all = false, true
	}
	for _, n := range sub.names {
		if p.names[n] && promised(n) {
			delete(p.names, n)
			names = append(names, n)
		}
	}
	t.settled(v, p)
	return all, names
}

func (t *turns) settled(v *view.View, p *pending) {
	if !p.all && len(p.names) == 0 {
		delete(t.pending, v)
	}
}

// leave takes a connection's turns away.
func (t *turns) leave(conn *connection) {
	x := t.byConn[conn]
	if x == nil {
		return
	}
	delete(t.byConn, conn)
	p := x.of
	if p.conns = slices.DeleteFunc(p.conns, func(y *connTurns) bool { return y == x }); len(p.conns) == 0 {
		delete(t.byPeer, p.peer)
		t.peers = slices.DeleteFunc(t.peers, func(q *peerTurns) bool { return q == p })
	}
}

// cost of a piece, or of a name, as it was measured.
func (t *turns) cost(what string, names int) time.Duration {
	if names == 0 {
		return cmp.Or(t.costs[what], firstCost)
	}
	return time.Duration(names) * cmp.Or(t.costs[what], firstCost/50)
}

// room reports whether the generator may be given more.
func (t *turns) room(now time.Time) bool {
	busy := time.Duration(0)
	for len(t.open) > 0 && now.Sub(t.open[0].sent) >= pieceLate {
		t.open = t.open[1:]
	}
	for _, o := range t.open {
		busy += t.cost(o.what, o.names)
	}
	return busy < inHand
}

// closed notes that a piece was answered; those before it were, or will not be. steady: nothing else was done meanwhile.
func (t *turns) closed(now time.Time, is func(openPiece) bool, steady bool) {
	for i, o := range t.open {
		if !is(o) {
			continue
		}
		began := o.sent
		if began.Before(t.last) {
			began = t.last
		}
		t.last = now
		t.open = t.open[i+1:]
		if took := now.Sub(began) / time.Duration(max(1, o.names)); steady && i == 0 {
			before := cmp.Or(t.costs[o.what], took)
			t.costs[o.what] = max(leastCost, before+(took-before)/4)
		}
		return
	}
}

// next takes the next piece: a connection to attach, or what to ask for.
func (t *turns) next() (attach *connection, want *pb.Want) {
	for len(t.peers) > 0 {
		p := t.peers[0]
		x := p.conns[0]
		if x.attach {
			attach, x.attach = x.conn, false
		}
		for attach == nil && want == nil && len(x.views) > 0 {
			if want = t.slice(x.views[0]); want == nil || t.spent(x.views[0]) {
				x.views = x.views[1:]
			}
		}
		// Its peer's other connections, and other peers, come first now.
		t.peers, p.conns = t.peers[1:], p.conns[1:]
		if len(x.views) > 0 {
			p.conns = append(p.conns, x)
		} else {
			delete(t.byConn, x.conn)
		}
		if len(p.conns) > 0 {
			t.peers = append(t.peers, p)
		} else {
			delete(t.byPeer, p.peer)
		}
		if attach != nil || want != nil {
			return attach, want
		}
	}
	return nil, nil
}

// spent reports whether a turn has come to its end.
func (t *turns) spent(w *viewTurn) bool {
	p := t.pending[w.view]
	return p == nil || !(p.all && w.sub.wildcard) && w.at >= len(w.sub.names)
}

// slice takes as much of a turn as makes a piece; nil: nothing of it is pending any more.
func (t *turns) slice(w *viewTurn) *pb.Want {
	p := t.pending[w.view]
	if p == nil {
		return nil
	}
	defer t.settled(w.view, p)
	if p.all && w.sub.wildcard {
		p.all = false
		return &pb.Want{Type: w.view.Type, View: w.view.ID, Wildcard: true}
	}
	most := min(max(int(piece/cmp.Or(t.costs[w.view.Type], firstCost/50)), 1), mostPiece)
	var names []string
	for ; w.at < len(w.sub.names) && len(names) < most; w.at++ {
		if n := w.sub.names[w.at]; p.names[n] {
			delete(p.names, n)
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return &pb.Want{Type: w.view.Type, View: w.view.ID, Names: names}
}

// give hands a generator as much of what connections wait for as it may have in hand.
func (c *Control) give(s *session, now time.Time, at func(time.Time)) {
	t := s.turns
	for !t.idle() && t.room(now) {
		conn, want := t.next()
		switch {
		case conn != nil:
			if s.attach(conn, s.typesFor(conn)); s.attached[conn.id] {
				t.open = append(t.open, openPiece{attach: conn.id, what: "attach", sent: now})
			}
		case want != nil:
			what := want.Type
			if want.Wildcard {
				what += " (all)"
			}
			t.open = append(t.open, openPiece{want: s.nextWant + 1, what: what, names: len(want.Names), sent: now})
			c.sendWants(s, want)
		}
	}
	if !t.idle() && len(t.open) > 0 {
		at(t.open[0].sent.Add(pieceLate))
	}
}

// sendWants sends a piece, in messages that it fits into. The last one's answer stands for all.
func (c *Control) sendWants(s *session, m *pb.Want) {
	if m.Wildcard {
		c.sendWant(s, m, false)
		return
	}
	for names := m.Names; len(names) > 0; {
		n := s.batch(names)
		c.sendWant(s, &pb.Want{Type: m.Type, View: m.View, Names: names[:n]}, false)
		names = names[n:]
	}
	s.turns.open[len(s.turns.open)-1].want = s.nextWant
}

// typesFor are the types that the session serves to a connection.
func (s *session) typesFor(conn *connection) []string {
	if s.shadow != nil {
		s.shadow.Attach(conn, nil)
		return s.shadow.Types(conn)
	}
	return conn.servedBy(s.Name)
}

// handed notes that a piece of work was answered, and gives the next.
func (c *Control) handed(s *session, is func(openPiece) bool) {
	now := time.Now()
	s.turns.closed(now, is, s.busy.IsZero())
	c.give(s, now, func(time.Time) {})
}
