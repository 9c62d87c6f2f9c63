package kubernetes

import (
	"context"
	"fmt"
	"sync"

	"github.com/coxswain-mesh/coxswain/sdk"
)

// gate lets so many in at once, and so many of one peer, so that one that makes tokens up keeps
// nobody else waiting.
type gate struct {
	all              chan struct{}
	perPeer, waiting int

	mu    sync.Mutex
	peers map[string]*lane
}

// lane is a peer's.
type lane struct {
	slots chan struct{}
	// users are those who are in, or wait.
	users int
}

func newGate(all, perPeer, waiting int) *gate {
	return &gate{all: make(chan struct{}, all), perPeer: min(perPeer, all), waiting: waiting, peers: map[string]*lane{}}
}

// enter waits for a peer's turn. An error wraps sdk.ErrUnavailable: too many of that peer wait
// already, or ctx ended.
func (g *gate) enter(ctx context.Context, peer string) (leave func(), err error) {
	g.mu.Lock()
	l := g.peers[peer]
	if l == nil {
		l = &lane{slots: make(chan struct{}, g.perPeer)}
		g.peers[peer] = l
	}
	if l.users >= g.perPeer+g.waiting {
		g.mu.Unlock()
		return nil, fmt.Errorf("%w: too many tokens of callers of this address are being checked", sdk.ErrUnavailable)
	}
	l.users++
	g.mu.Unlock()
	for i, slots := range []chan struct{}{l.slots, g.all} {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			if i > 0 {
				<-l.slots
			}
			g.left(peer, l)
			return nil, fmt.Errorf("%w: too many tokens are being checked", sdk.ErrUnavailable)
		}
	}
	return func() {
		<-g.all
		<-l.slots
		g.left(peer, l)
	}, nil
}

func (g *gate) left(peer string, l *lane) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(g.peers, peer)
	}
}
