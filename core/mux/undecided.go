package mux

import (
	"container/list"
	"net"
	"sync"

	"github.com/coxswain-mesh/coxswain/core/budget"
)

// How many connections may be looked at at a time, and how many of them may be one peer's. An
// honest one says what it is for as soon as it is there.
const mostUndecided, undecidedOfPeer = 2048, 1024

// undecided are the connections that have not said yet what they are for. Beyond the bounds the
// oldest give way: of the peer that has too many, otherwise of the one that has most.
type undecided struct {
	most, ofPeer int

	mu    sync.Mutex
	peers map[string]*list.List // of net.Conn, the oldest first
	all   int
	ended bool
}

func newUndecided(most, ofPeer int) *undecided {
	return &undecided{most: most, ofPeer: ofPeer, peers: map[string]*list.List{}}
}

// enter adds a connection. What it returns takes it out again. It reports false after the end.
func (u *undecided) enter(c net.Conn) (leave func(), ok bool) {
	peer := budget.Address(c.RemoteAddr().String())
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		return nil, false
	}
	if of := u.peers[peer]; of != nil && of.Len() >= u.ofPeer {
		u.close(peer)
	} else if u.all >= u.most {
		u.close(u.greediest())
	}
	if u.peers[peer] == nil {
		u.peers[peer] = list.New()
	}
	place := u.peers[peer].PushBack(c)
	u.all++
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.remove(peer, place)
	}, true
}

// giveWay closes the oldest connection of the peer that has most.
func (u *undecided) giveWay() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.close(u.greediest())
}

// end closes all, and lets none in.
func (u *undecided) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
	for peer, of := range u.peers {
		for range of.Len() {
			u.close(peer)
		}
	}
}

// greediest returns the peer that has most. The lock is held.
func (u *undecided) greediest() (peer string) {
	most := 0
	for p, of := range u.peers {
		if of.Len() > most {
			peer, most = p, of.Len()
		}
	}
	return peer
}

// close closes a peer's oldest connection, if it has one. The lock is held.
func (u *undecided) close(peer string) {
	if of := u.peers[peer]; of != nil {
		oldest := of.Front()
		u.remove(peer, oldest)
		abort(oldest.Value.(net.Conn))
	}
}

// remove takes a connection out, unless it is out already. The lock is held.
func (u *undecided) remove(peer string, place *list.Element) {
	of := u.peers[peer]
	if of == nil {
		return
	}
	before := of.Len()
	of.Remove(place)
	u.all -= before - of.Len()
	if of.Len() == 0 {
		delete(u.peers, peer)
	}
}
