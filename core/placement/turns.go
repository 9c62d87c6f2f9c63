package placement

import (
	"cmp"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// New connections, and names that are asked for the first time, are work that nobody waits for but
// who asks. A generator is given it in small pieces, of each peer and each of its connections in
// turn, and never more than it does in a moment: so a state, an edit of what others have, waits no
// longer than that, however much somebody asks for.

const (
	// inHand is how much work a generator may have in hand, onePiece how much of it one message may
	// be.
	inHand   = 50 * time.Millisecond
	onePiece = inHand / 2
	// firstCost is what a piece of work is taken to cost before it was measured, a name a fiftieth
	// of that.
	firstCost = 5 * time.Millisecond
	// leastCost is what a piece, or a name, is taken to cost at least, and MostPiece the most names
	// of one: an answer may come sooner than it is made.
	leastCost = 20 * time.Microsecond
	MostPiece = 1024
	// PieceLate is when a piece that is not answered (as one that failed isn't) is not waited for
	// any more.
	PieceLate = 5 * time.Second
)

// Turns are what connections wait for, of one generator.
type Turns[C comparable] struct {
	peers  []*peerTurns[C]
	byPeer map[string]*peerTurns[C]
	byConn map[C]*connTurns[C]
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
type peerTurns[C comparable] struct {
	peer  string
	conns []*connTurns[C]
}

type connTurns[C comparable] struct {
	of     *peerTurns[C]
	conn   C
	attach bool
	views  []*viewTurn
}

// viewTurn is what a connection wants of a view: those of the names that are pending, from a place
// on.
type viewTurn struct {
	view *view.View
	wish Wish
	at   int
}

// Piece is a piece of work for a generator: a connection to attach, or, with Want, what to ask for.
type Piece[C comparable] struct {
	Attach C
	Want   *pb.Want
}

// openPiece is a piece of work that a generator has in hand.
type openPiece struct {
	// id is that of the connection, or of the Want.
	attach bool
	id     uint64
	what   string
	names  int
	sent   time.Time
}

// NewTurns returns those of a generator that nobody waits for.
func NewTurns[C comparable]() *Turns[C] {
	return &Turns[C]{
		byPeer: map[string]*peerTurns[C]{}, byConn: map[C]*connTurns[C]{}, pending: map[*view.View]*pending{}, costs: map[string]time.Duration{},
	}
}

// Idle reports whether nothing is left to be asked for.
func (t *Turns[C]) Idle() bool { return len(t.peers) == 0 }

// of returns a connection's turns, the last of its peer's if it had none.
func (t *Turns[C]) of(conn C, peer string) *connTurns[C] {
	if x := t.byConn[conn]; x != nil {
		return x
	}
	p := t.byPeer[peer]
	if p == nil {
		p = &peerTurns[C]{peer: peer}
		t.byPeer[peer] = p
		t.peers = append(t.peers, p)
	}
	x := &connTurns[C]{conn: conn, of: p}
	t.byConn[conn] = x
	p.conns = append(p.conns, x)
	return x
}

// Attach has the generator told of a connection in its turn; peer is whose turn that is.
func (t *Turns[C]) Attach(conn C, peer string) { t.of(conn, peer).attach = true }

// Wish notes that a view's content is wanted for the first time (all, fresh), by a connection among
// others. What others wait for already the connection gets in its own turn, too.
func (t *Turns[C]) Wish(conn C, peer string, v *view.View, wish Wish, all bool, fresh []string) {
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
	x := t.of(conn, peer)
	for _, w := range x.views {
		if w.view == v {
			w.wish, w.at = wish, 0
			return
		}
	}
	x.views = append(x.views, &viewTurn{view: v, wish: wish})
}

// Drop takes back what nobody wants any more, and returns what the generator was asked for and is
// to be told.
func (t *Turns[C]) Drop(v *view.View, all bool, gone []string) (tellAll bool, tell []string) {
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
	t.forgetDone(v, p)
	return all, tell
}

// Promised takes out of what is pending what a connection must not wait for: the names of its wish
// that are promised to it, and all if it wants that.
func (t *Turns[C]) Promised(v *view.View, wish Wish, promised func(name string) bool) (all bool, names []string) {
	p := t.pending[v]
	if p == nil {
		return false, nil
	}
	if wish.Wildcard && p.all {
		p.all, all = false, true
	}
	for _, n := range wish.Names {
		if p.names[n] && promised(n) {
			delete(p.names, n)
			names = append(names, n)
		}
	}
	t.forgetDone(v, p)
	return all, names
}

func (t *Turns[C]) forgetDone(v *view.View, p *pending) {
	if !p.all && len(p.names) == 0 {
		delete(t.pending, v)
	}
}

// Leave takes a connection's turns away.
func (t *Turns[C]) Leave(conn C) {
	x := t.byConn[conn]
	if x == nil {
		return
	}
	delete(t.byConn, conn)
	p := x.of
	if p.conns = slices.DeleteFunc(p.conns, func(y *connTurns[C]) bool { return y == x }); len(p.conns) == 0 {
		delete(t.byPeer, p.peer)
		t.peers = slices.DeleteFunc(t.peers, func(q *peerTurns[C]) bool { return q == p })
	}
}

// cost of a piece, or of a name, as it was measured.
func (t *Turns[C]) cost(what string, names int) time.Duration {
	if names == 0 {
		return cmp.Or(t.costs[what], firstCost)
	}
	return time.Duration(names) * cmp.Or(t.costs[what], firstCost/50)
}

// room reports whether the generator may be given more.
func (t *Turns[C]) room(now time.Time) bool {
	busy := time.Duration(0)
	for len(t.open) > 0 && now.Sub(t.open[0].sent) >= PieceLate {
		t.open = t.open[1:]
	}
	for _, o := range t.open {
		busy += t.cost(o.what, o.names)
	}
	return busy < inHand
}

// Attached and Wanted note that the generator has answered about a connection that it was told of,
// or a Want. steady: it did nothing else meanwhile, so that the time that it took says something.
func (t *Turns[C]) Attached(id uint64, now time.Time, steady bool) { t.answered(true, id, now, steady) }

// Wanted see Attached.
func (t *Turns[C]) Wanted(id uint64, now time.Time, steady bool) { t.answered(false, id, now, steady) }

// answered notes that a piece was answered; those before it were, or will not be.
func (t *Turns[C]) answered(attach bool, id uint64, now time.Time, steady bool) {
	for i, o := range t.open {
		if o.attach != attach || o.id != id {
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

// Next takes the next piece, if there is one and the generator may have more in hand. It counts as
// in hand once Given is told.
func (t *Turns[C]) Next(now time.Time) (piece Piece[C], ok bool) {
	for len(t.peers) > 0 && t.room(now) {
		p := t.peers[0]
		x := p.conns[0]
		if ok = x.attach; ok {
			piece.Attach, x.attach = x.conn, false
		}
		for !ok && len(x.views) > 0 {
			if piece.Want = t.slice(x.views[0]); piece.Want == nil || t.spent(x.views[0]) {
				x.views = rest(x.views)
			}
			ok = piece.Want != nil
		}
		// Its peer's other connections, and other peers, come first now.
		t.peers, p.conns = rest(t.peers), rest(p.conns)
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
		if ok {
			return piece, true
		}
	}
	return piece, false
}

// rest returns a queue without its first, which its array doesn't keep either: a connection that
// has left would stay, with all that it has seen, until another takes its place.
func rest[T any](queue []*T) []*T {
	queue[0] = nil
	return queue[1:]
}

// Given notes that a generator was given a piece: id is the connection's, or that of the last Want
// that it was sent as.
func (t *Turns[C]) Given(piece Piece[C], id uint64, now time.Time) {
	o := openPiece{attach: piece.Want == nil, id: id, what: "attach", sent: now}
	if m := piece.Want; m != nil {
		if o.what, o.names = m.Type, len(m.Names); m.Wildcard {
			o.what += " (all)"
		}
	}
	t.open = append(t.open, o)
}

// Again is when there may be room for more without an answer; the zero time: nobody waits.
func (t *Turns[C]) Again() time.Time {
	if t.Idle() || len(t.open) == 0 {
		return time.Time{}
	}
	return t.open[0].sent.Add(PieceLate)
}

// spent reports whether a turn has come to its end.
func (t *Turns[C]) spent(w *viewTurn) bool {
	p := t.pending[w.view]
	return p == nil || !(p.all && w.wish.Wildcard) && w.at >= len(w.wish.Names)
}

// slice takes as much of a turn as makes a piece; nil: nothing of it is pending any more.
func (t *Turns[C]) slice(w *viewTurn) *pb.Want {
	p := t.pending[w.view]
	if p == nil {
		return nil
	}
	defer t.forgetDone(w.view, p)
	if p.all && w.wish.Wildcard {
		p.all = false
		return &pb.Want{Type: w.view.Type, View: w.view.ID, Wildcard: true}
	}
	most := min(max(int(onePiece/cmp.Or(t.costs[w.view.Type], firstCost/50)), 1), MostPiece)
	var names []string
	for ; w.at < len(w.wish.Names) && len(names) < most; w.at++ {
		if n := w.wish.Names[w.at]; p.names[n] {
			delete(p.names, n)
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return &pb.Want{Type: w.view.Type, View: w.view.ID, Names: names}
}
