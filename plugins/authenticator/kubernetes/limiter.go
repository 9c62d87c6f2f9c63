package kubernetes

import (
	"context"
	"fmt"
	"sync"

	"github.com/coxswain-mesh/coxswain/sdk"
)

// limiter lets so many in at once, and so many of one peer, so that one that makes tokens up keeps
// nobody else waiting.
type limiter struct {
	all              chan struct{}
	perPeer, waiting int

	mu    sync.Mutex
	peers map[string]*peerLimiter
}

// peerLimiter is a peer's.
type peerLimiter struct {
	slots chan struct{}
	// users are those who are in, or wait.
	users int
}

func newLimiter(all, perPeer, waiting int) *limiter {
	return &limiter{all: make(chan struct{}, all), perPeer: min(perPeer, all), waiting: waiting, peers: map[string]*peerLimiter{}}
}

// enter waits for a peer's turn. An error wraps sdk.ErrUnavailable: too many of that peer wait
// already, or ctx ended.
func (l *limiter) enter(ctx context.Context, peer string) (leave func(), err error) {
	l.mu.Lock()
	p := l.peers[peer]
	if p == nil {
		p = &peerLimiter{slots: make(chan struct{}, l.perPeer)}
		l.peers[peer] = p
	}
	if p.users >= l.perPeer+l.waiting {
		l.mu.Unlock()
		return nil, fmt.Errorf("%w: too many tokens of callers of this address are being checked", sdk.ErrUnavailable)
	}
	p.users++
	l.mu.Unlock()
	for i, slots := range []chan struct{}{p.slots, l.all} {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			if i > 0 {
				<-p.slots
			}
			l.left(peer, p)
			return nil, fmt.Errorf("%w: too many tokens are being checked", sdk.ErrUnavailable)
		}
	}
	return func() {
		<-l.all
		<-p.slots
		l.left(peer, p)
	}, nil
}

func (l *limiter) left(peer string, p *peerLimiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.users--; p.users == 0 {
		delete(l.peers, peer)
	}
}
