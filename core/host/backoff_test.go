package host

import (
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	b := Backoff{}.filled()
	for _, c := range []struct {
		failures int
		chance   float64
		want     time.Duration
	}{
		{0, 1, 100 * time.Millisecond},
		{0, 0, 50 * time.Millisecond},
		{1, 1, 200 * time.Millisecond},
		{3, 0.5, 600 * time.Millisecond},
		{8, 1, 25600 * time.Millisecond},
		{9, 1, 30 * time.Second},
		{39, 1, 30 * time.Second},
		{1000, 0, 15 * time.Second},
	} {
		if got := b.pause(c.failures, c.chance); got != c.want {
			t.Errorf("pause(%d, %v) is %v, want %v", c.failures, c.chance, got, c.want)
		}
	}
	if b := (Backoff{Min: time.Minute}).filled(); b.Max != time.Minute {
		t.Errorf("max %v is below min", b.Max)
	}
}
