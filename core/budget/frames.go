package budget

import (
	"time"

	"golang.org/x/time/rate"
)

// framesPerStream is how many frames of HTTP/2 a stream may cost that ask for something: its
// headers, its end, and a share of pings and settings. Connections need some a second (leastFrames)
// however few streams may begin.
const (
	framesPerStream = 4
	leastFrames     = 100
)

// framesOf returns the limiter of frames of a peer that may begin so many streams a second, nil for
// none.
func framesOf(newStreams float64) *rate.Limiter {
	if newStreams <= 0 {
		return nil
	}
	return bucket(max(leastFrames, framesPerStream*newStreams))
}

// Frames notes what frames of HTTP/2 cost that a connection of a peer has sent, and returns how
// long to wait before more is read. They cost work whether streams begin or not. A peer owes no
// more than it may send at once, so that its other connections don't wait for long.
func (p *Peers) Frames(key string, cost int, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.at(key, now).frames
	if l == nil {
		return 0
	}
	if n := min(cost, l.Burst(), l.Burst()+int(l.TokensAt(now))); n > 0 {
		l.ReserveN(now, n)
	}
	return max(0, time.Duration(-l.TokensAt(now)/float64(l.Limit())*float64(time.Second)))
}
