package budget

import (
	"fmt"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
)

// Shares of the limits of names that don't exist. A plugin that is asked for many names has no time
// for others meanwhile, so only so many are asked for at once: by a stream, by a peer and by all.
// Those of a stream that knows nothing yet may be known to others, so a few of them always go.
const (
	streamAtOnce = 5  // a fifth of a stream's
	peerAtOnce   = 40 // a fortieth of a peer's
	allAtOnce    = 10 // a tenth of a peer's
	always       = 50
	// slow is in how many seconds a peer may do again what it may do at once: find out that names
	// don't exist, bring lists that are new.
	slow = 100
)

// slowly returns the limiter of names that cost something, nil for none.
func slowly(names int) *rate.Limiter {
	if names <= 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(float64(names)/slow), names)
}

// Ask notes names that a stream asks for, of which h.Absent don't exist and unanswered are not
// known to, and returns how many of these plugins may be asked for now; fresh says that nothing at
// all is known yet. A long list is asked for in parts: those who want what exists get all of it,
// and those who don't are refused before it costs much.
func (l *Lease) Ask(slot string, h Held, unanswered int, fresh bool, now time.Time) (names int, err error) {
	p := l.peers
	p.mu.Lock()
	e, was := l.peer, l.held[slot]
	e.learn(h, was, now)
	if k := e.lists[was.Of]; k != nil && k.streams > 1 && was.Of != h.Of {
		was = Held{} // others go on holding it
	}
	names, err = p.limits.part(e, h, was, unanswered)
	if names > 0 {
		names = p.atOnce(e, was, names, fresh, now)
	}
	p.mu.Unlock()
	if err != nil {
		return 0, err
	}
	h.Asked = names
	return names, l.Hold(slot, h, now)
}

// learn counts names that turned out not to exist, of those that were asked for.
func (e *peer) learn(h, was Held, now time.Time) {
	k := e.lists[h.Of]
	if e.vain == nil || k == nil || was.Of != h.Of {
		return
	}
	if n := min(h.Absent-k.Absent, k.Asked); n > 0 {
		e.vain.ReserveN(now, min(n, e.vain.Burst()))
	}
}

// part returns how many names may be asked for in all, with what the stream had before not counted.
func (l Limits) part(e *peer, h, was Held, unanswered int) (int, error) {
	const do = "ask for what exists"
	names := unanswered
	if most := l.Stream.UnknownNames; most > 0 {
		if h.Absent+min(unanswered, 1) > most {
			return 0, exceeds(codes.ResourceExhausted, "maxUnknownNames", most,
				fmt.Sprintf("the stream asks for %d names of one type that don't exist, and for more", h.Absent), do)
		}
		names = min(names, most-h.Absent, max(1, most/streamAtOnce))
	}
	if most := l.Peer.UnknownNames; most > 0 {
		absent := e.absent - was.Absent + h.Absent
		if absent+min(unanswered, 1) > most {
			return 0, exceeds(codes.ResourceExhausted, "maxUnknownNamesPerPeer", most,
				fmt.Sprintf("the streams of %s ask for %d names that don't exist, and for more", e.key, absent), do)
		}
	}
	return names, nil
}

// atOnce returns how many names may be asked for while others are asked for.
func (p *Peers) atOnce(e *peer, was Held, names int, fresh bool, now time.Time) int {
	most := p.limits.Peer.UnknownNames
	if most <= 0 {
		return names
	}
	if e.vain.TokensAt(now) < 1 {
		return 0
	}
	least := 0
	if fresh {
		least = min(names, always)
	}
	room := min(max(1, most/peerAtOnce)-e.asked+was.Asked, max(1, most/allAtOnce)-p.total.asked+was.Asked)
	return max(least, min(names, room))
}
