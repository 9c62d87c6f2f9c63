package budget

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
)

// Peers is the account of who costs what. A peer is an identity, if it is verified, and otherwise
// an address. Those that have nothing and ask for nothing are forgotten.
type Peers struct {
	limits Limits

	mu    sync.Mutex
	all   map[string]*peer
	sweep int // how many there may be before those that have nothing are looked for
	total struct {
		connections int
		starts      *rate.Limiter
		asked       int // names that plugins are asked for
	}
}

// peer is one of them.
type peer struct {
	key                  string
	connections, streams int
	starts, requests     *rate.Limiter
	vain                 *rate.Limiter // names that turn out not to exist
	lately               *rate.Limiter // names of new lists
	frames               *rate.Limiter // of HTTP/2 that ask for something
	all                  *int          // names that all peers ask plugins for
	lists                map[any]*list
	names, bytes         int
	absent, asked        int // of the names, those that don't exist and those that plugins are asked for
}

// list is what streams of a peer hold together: equal lists of names are one.
type list struct {
	Held
	streams int
}

// Held is something that a stream makes the core keep.
type Held struct {
	// Of tells equal things from others: they are kept once.
	Of           any
	Names, Bytes int
	// Absent of the names don't exist, Asked are those that plugins have not answered.
	Absent, Asked int
}

// minSweep is from how many peers on those that have nothing are looked for.
const minSweep = 1024

// NewPeers returns an account that is empty.
func NewPeers(l Limits) *Peers {
	p := &Peers{limits: l, all: map[string]*peer{}, sweep: minSweep}
	p.total.starts = bucket(l.Total.NewStreams)
	return p
}

// bucket returns the limiter of so many a second, nil for none.
func bucket(perSecond float64) *rate.Limiter {
	if perSecond <= 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(perSecond), max(1, int(burst*perSecond)))
}

// Address returns the peer that an address belongs to: the address without its port, or the network
// of 64 bits that it is from in IPv6, for whoever has one address there has all.
func Address(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	a := at.Addr().Unmap().WithZone("")
	if a.Is4() {
		return a.String()
	}
	n, _ := a.Prefix(64)
	return n.String()
}

// at returns a peer. The lock is held.
func (p *Peers) at(key string, now time.Time) *peer {
	if e := p.all[key]; e != nil {
		return e
	}
	if len(p.all) >= p.sweep {
		for key, e := range p.all {
			if e.idle(now) {
				delete(p.all, key)
			}
		}
		p.sweep = max(minSweep, 2*len(p.all))
	}
	e := &peer{
		key: key, starts: bucket(p.limits.Peer.NewStreams), requests: bucket(p.limits.Peer.Requests),
		lists: map[any]*list{}, vain: slowly(p.limits.Peer.UnknownNames), lately: slowly(p.limits.Peer.Names / 2),
		frames: framesOf(p.limits.Peer.NewStreams), all: &p.total.asked,
	}
	p.all[key] = e
	return e
}

// idle reports whether nothing is lost if the peer is forgotten.
func (e *peer) idle(now time.Time) bool {
	full := func(l *rate.Limiter) bool { return l == nil || l.TokensAt(now) >= float64(l.Burst()) }
	return e.connections == 0 && e.streams == 0 && full(e.starts) && full(e.requests) && full(e.vain) && full(e.lately) && full(e.frames)
}

// patience is how long a stream may wait for its turn to begin.
const patience = time.Second

// Begin lets a stream of a peer begin after a time, which is mostly zero, or refuses it.
func (p *Peers) Begin(key string, now time.Time) (*Lease, time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.at(key, now)
	if over(e.streams+1, p.limits.Peer.Streams) {
		return nil, 0, exceeds(codes.ResourceExhausted, "maxStreamsPerPeer", p.limits.Peer.Streams,
			fmt.Sprintf("%s has %d streams", e.key, e.streams), "end some")
	}
	wait, err := p.turn(e, now)
	if err != nil {
		return nil, 0, err
	}
	e.streams++
	return &Lease{peers: p, peer: e, requests: bucket(p.limits.Stream.Requests), held: map[string]Held{}}, wait, nil
}

// turn takes one of the streams that may begin, of the peer and of all.
func (p *Peers) turn(e *peer, now time.Time) (time.Duration, error) {
	wait := time.Duration(0)
	var taken []*rate.Reservation
	for _, l := range []struct {
		*rate.Limiter
		name, whose string
	}{{e.starts, "maxNewStreamsPerPeer", e.key}, {p.total.starts, "maxRequestsPerSecond", "all clients together"}} {
		if l.Limiter == nil {
			continue
		}
		r := l.ReserveN(now, 1)
		taken = append(taken, r)
		if d := r.DelayFrom(now); d > patience {
			for _, r := range taken {
				r.CancelAt(now)
			}
			return 0, exceeds(codes.ResourceExhausted, l.name, fmt.Sprintf("%v a second", float64(l.Limit())),
				fmt.Sprintf("%s began too many streams", l.whose), "try again later")
		}
		wait = max(wait, r.DelayFrom(now))
	}
	return wait, nil
}

// Lease is a stream's part in the account, until End. One goroutine uses it at a time, but for
// Request, which another one may.
type Lease struct {
	peers    *Peers
	requests *rate.Limiter

	// The account's lock is held for what follows.
	peer *peer
	held map[string]Held
	over bool
}

// Become moves the stream to another peer: who is behind it is known now.
func (l *Lease) Become(key string, now time.Time) error {
	p := l.peers
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.at(key, now)
	if e == l.peer {
		return nil
	}
	if over(e.streams+1, p.limits.Peer.Streams) {
		return exceeds(codes.ResourceExhausted, "maxStreamsPerPeer", p.limits.Peer.Streams, fmt.Sprintf("%s has %d streams", e.key, e.streams), "end some")
	}
	held := l.held
	l.held = map[string]Held{}
	for slot, h := range held {
		l.peer.drop(h)
		l.held[slot] = h
		e.add(h)
	}
	l.peer.streams--
	e.streams++
	l.peer = e
	return nil
}

// Hold notes what the stream keeps in a slot, in place of what was there. Nothing is what is zero.
func (l *Lease) Hold(slot string, h Held, now time.Time) error {
	p := l.peers
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.over {
		return nil
	}
	e, was := l.peer, l.held[slot]
	if was == h {
		return nil
	}
	if e.lately != nil && e.lists[h.Of] == nil && h.Names > 0 {
		e.lately.ReserveN(now, min(h.Names, e.lately.Burst())) // Request waits
	}
	e.add(h)
	e.drop(was)
	if l.held[slot] = h; h == (Held{}) {
		delete(l.held, slot)
	}
	return p.limits.Peer.check(e)
}

// add notes what a stream holds. What others hold already is what it is said to be last.
func (e *peer) add(h Held) {
	if h.Of == nil {
		return
	}
	k := e.lists[h.Of]
	if k == nil {
		k = &list{}
		e.lists[h.Of] = k
	}
	e.count(k.Held, -1)
	e.count(h, 1)
	k.Held = h
	k.streams++
}

func (e *peer) count(h Held, sign int) {
	e.names, e.bytes = e.names+sign*h.Names, e.bytes+sign*h.Bytes
	e.absent, e.asked = e.absent+sign*h.Absent, e.asked+sign*h.Asked
	*e.all += sign * h.Asked
}

func (e *peer) drop(h Held) {
	k := e.lists[h.Of]
	if k == nil {
		return
	}
	if k.streams--; k.streams == 0 {
		delete(e.lists, h.Of)
		e.count(k.Held, -1)
	}
}

// check judges what a peer's streams hold together.
func (l *Peer) check(e *peer) error {
	switch {
	case over(e.names, l.Names):
		return exceeds(codes.ResourceExhausted, "maxNamesPerPeer", l.Names, fmt.Sprintf("the streams of %s ask for %d names", e.key, e.names), "ask for less")
	case over(e.bytes, l.Bytes):
		return exceeds(codes.ResourceExhausted, "maxBytesPerPeer", l.Bytes, fmt.Sprintf("nodes and names of %s take %d bytes", e.key, e.bytes), "ask for less")
	}
	return nil
}

// Request takes a request's turn and returns how long it has to wait, and for which limit.
func (l *Lease) Request(now time.Time) (wait time.Duration, limit string) {
	l.peers.mu.Lock()
	ofPeer, lately := l.peer.requests, l.peer.lately
	l.peers.mu.Unlock()
	for _, b := range []struct {
		*rate.Limiter
		name string
	}{{l.requests, "maxRequestsPerStream"}, {ofPeer, "maxRequestsPerPeer"}} {
		if b.Limiter == nil {
			continue
		}
		if d := b.ReserveN(now, 1).DelayFrom(now); d > wait {
			wait, limit = d, b.name
		}
	}
	if lately != nil {
		if owed := -lately.TokensAt(now); owed > 0 {
			wait, limit = max(wait, time.Duration(owed/float64(lately.Limit())*float64(time.Second))), "maxNamesPerPeer"
		}
	}
	return wait, limit
}

// End gives back all that the stream has.
func (l *Lease) End() {
	p := l.peers
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.over {
		return
	}
	l.over = true
	for _, h := range l.held {
		l.peer.drop(h)
	}
	l.held = nil
	l.peer.streams--
}

// Connect takes a connection in, or says why not.
func (p *Peers) Connect(key string, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.at(key, now)
	switch {
	case over(e.connections+1, p.limits.Peer.Connections):
		return exceeds(codes.ResourceExhausted, "maxConnectionsPerPeer", p.limits.Peer.Connections,
			fmt.Sprintf("%s has %d connections", key, e.connections), "close some")
	case over(p.total.connections+1, p.limits.Total.Connections):
		return exceeds(codes.ResourceExhausted, "maxConnections", p.limits.Total.Connections,
			fmt.Sprintf("there are %d connections", p.total.connections), "close some")
	}
	e.connections++
	p.total.connections++
	return nil
}

// Disconnect gives a connection back.
func (p *Peers) Disconnect(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.all[key]; e != nil {
		e.connections--
		p.total.connections--
	}
}

// Use is what a peer costs now.
type Use struct {
	Peer        string `json:"peer"`
	Connections int    `json:"connections"`
	Streams     int    `json:"streams"`
	Names       int    `json:"names"`
	Bytes       int    `json:"bytes"`
}

// Uses returns what peers cost, those that cost something.
func (p *Peers) Uses() (all []Use) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.all {
		if e.connections+e.streams > 0 {
			all = append(all, Use{strings.Clone(e.key), e.connections, e.streams, e.names, e.bytes})
		}
	}
	return all
}
