package revision

import (
	"time"

	"golang.org/x/time/rate"
)

// Burst is how many revisions of endpoints alone may come without a pause between them, at most.
const Burst = 100

const (
	// longestPause is the most that lies between two of them when they come all the time.
	longestPause = 2 * time.Second
	// owed is how much pause a burst may leave out: many connections have few revisions at once.
	owed = 40 * time.Second
)

// Pacer keeps revisions of endpoints alone apart. Each wakes connections, however little it brings;
// where they come all the time, what they bring is gathered, so that waking takes a bounded share
// of the time.
type Pacer struct {
	// each is how long the pause is for each connection.
	each  time.Duration
	limit *rate.Limiter
}

// NewPacer returns one with so long a pause for each connection.
func NewPacer(each time.Duration) *Pacer { return &Pacer{each, rate.NewLimiter(rate.Inf, Burst)} }

// Carried notes that a revision of more than endpoints brings those that wait: the next one of
// endpoints alone comes a pause later, and never more than one, however many such revisions there
// were.
func (p *Pacer) Carried(now time.Time) {
	if p.limit.TokensAt(now) < 1 {
		p.limit = rate.NewLimiter(p.limit.Limit(), Burst)
		p.limit.ReserveN(now, Burst)
	}
}

// May reports whether endpoints may have a revision of their own now, and otherwise when to ask
// again.
func (p *Pacer) May(connections int, now time.Time) (ok bool, again time.Time) {
	pause := min(time.Duration(connections)*p.each, longestPause)
	limit, burst := rate.Inf, Burst
	if pause > 0 {
		limit, burst = rate.Every(pause), min(Burst, max(1, int(owed/pause)))
	}
	p.limit.SetLimitAt(now, limit)
	p.limit.SetBurstAt(now, burst)
	if p.limit.AllowN(now, 1) {
		return true, time.Time{}
	}
	return false, now.Add(max(time.Millisecond, time.Duration((1-p.limit.TokensAt(now))*float64(pause))))
}
