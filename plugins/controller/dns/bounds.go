package dns

import (
	"net/netip"
	"sync"
	"time"
)

// sources is how many addresses are counted at once; where more ask within a second, counting
// begins anew.
const sources = 1 << 16

// rates count what addresses ask by UDP, which anybody can say to be another one's.
type rates struct {
	perSecond int

	mu    sync.Mutex
	since time.Time
	asked map[netip.Addr]int
}

// verdict is what becomes of a query.
type verdict uint8

const (
	// answered as any.
	answered verdict = iota
	// shortened: the client is told to come by TCP, in no more bytes than it sent.
	shortened
	// dropped: it is told nothing.
	dropped
)

// judge counts a query.
func (r *rates) judge(client netip.Addr, now time.Time) verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.since) >= time.Second || len(r.asked) >= sources {
		r.since, r.asked = now, map[netip.Addr]int{}
	}
	client = bucket(client)
	n := r.asked[client] + 1
	r.asked[client] = n
	switch {
	case n <= r.perSecond:
		return answered
	case n <= 2*r.perSecond:
		return shortened
	}
	return dropped
}

// bucket is what counts as one client: an address, or a /64 of IPv6.
func bucket(client netip.Addr) netip.Addr {
	client = client.Unmap().WithZone("")
	if client.Is6() {
		if p, err := client.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return client
}

// seats are connections that may be there at once.
type seats struct {
	most int

	mu    sync.Mutex
	all   int
	taken map[netip.Addr]int
}

// take reports whether a client may have one more.
func (s *seats) take(client netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	client = bucket(client)
	if s.all >= s.most || s.taken[client] >= max(s.most/10, 1) {
		return false
	}
	s.all++
	s.taken[client]++
	return true
}

func (s *seats) leave(client netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	client = bucket(client)
	s.all--
	if s.taken[client]--; s.taken[client] <= 0 {
		delete(s.taken, client)
	}
}
