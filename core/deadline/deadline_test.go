package deadline

import (
	"testing"
	"time"
)

func TestEnd(t *testing.T) {
	at := time.Unix(100, 0)
	for _, c := range []struct{ before, lost, want time.Duration }{
		{0, 0, 5 * time.Second},
		{2 * time.Second, 3 * time.Second, 6 * time.Second},
		{0, time.Hour, 50 * time.Second},
	} {
		if got := (Moment{at, c.before}).End(5*time.Second, c.lost).Sub(at); got != c.want {
			t.Errorf("lost %v, then %v: the limit ends after %v, not %v", c.before, c.lost, got, c.want)
		}
	}
}
