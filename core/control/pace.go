package control

import (
	"time"

	"golang.org/x/time/rate"
)

// burst is how many revisions of endpoints alone may come without a pause between them, and longestPause the most that lies between two when they come all the time.
const burst, longestPause = 100, 2 * time.Second

func newPace() *rate.Limiter { return rate.NewLimiter(rate.Inf, burst) }

// carried notes that a revision of more than endpoints brings those that wait: the next one of endpoints alone comes a pause later, and never more
// than one, however many such revisions there were.
func (c *Control) carried(now time.Time) {
	if endpoints, _ := c.env.Pending(); endpoints && c.pace.TokensAt(now) < 1 {
		c.pace = rate.NewLimiter(c.pace.Limit(), burst)
		c.pace.ReserveN(now, burst)
	}
}

// paced reports whether endpoints may have a revision of their own now, and otherwise says when. Each wakes connections, however little it brings; where they
// come all the time, what they bring is gathered, so that waking takes a bounded share of the time.
func (c *Control) paced(now time.Time, at func(time.Time)) bool {
	pause := min(time.Duration(len(c.conns))*c.cfg.EndpointPause, longestPause)
	limit := rate.Inf
	if pause > 0 {
		limit = rate.Every(pause)
	}
	c.pace.SetLimitAt(now, limit)
	if c.pace.AllowN(now, 1) {
		return true
	}
	at(now.Add(max(time.Millisecond, time.Duration((1-c.pace.TokensAt(now))*float64(pause)))))
	return false
}
