package host

import (
	"cmp"
	"time"
)

// Backoff says how long to wait before a plugin is started again.
type Backoff struct {
	// Min is the first pause (default 100ms); each further one is twice as long, up to Max (default
	// 30s).
	Min, Max time.Duration
	// Reset is how long a plugin must have been up for its failures to be forgotten (default 1m).
	Reset time.Duration
}

func (b Backoff) filled() Backoff {
	b.Min = cmp.Or(b.Min, 100*time.Millisecond)
	b.Max = max(b.Min, cmp.Or(b.Max, 30*time.Second))
	b.Reset = cmp.Or(b.Reset, time.Minute)
	return b
}

// pause after so many failures in a row (0: the first). chance, from 0 to 1, spreads it between
// half of it and all.
func (b Backoff) pause(failures int, chance float64) time.Duration {
	full := b.Max
	if failures < 40 && b.Min<<failures > 0 {
		full = min(b.Max, b.Min<<failures)
	}
	return full/2 + time.Duration(chance*float64(full/2))
}
