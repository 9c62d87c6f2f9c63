package budget

import (
	"testing"
	"time"
)

// TestFramesOfPeers: too many have to wait, no longer than it takes to be allowed as many as at
// once, and nobody else waits.
func TestFramesOfPeers(t *testing.T) {
	now := time.Unix(0, 0)
	p := NewPeers(Limits{Peer: Peer{NewStreams: 25}}) // 100 frames a second, 1000 at once
	if w := p.Frames("a", 1000, now); w != 0 {
		t.Error(w)
	}
	if w := p.Frames("a", 100, now); w.Round(time.Millisecond) != time.Second {
		t.Error(w)
	}
	for range 100 {
		if w := p.Frames("a", 10_000, now); w.Round(time.Millisecond) > burst*time.Second {
			t.Fatal(w)
		}
	}
	if w := p.Frames("b", 100, now); w != 0 {
		t.Error(w)
	}
	if w := p.Frames("a", 0, now.Add(2*burst*time.Second)); w != 0 {
		t.Error(w)
	}
	if w := NewPeers(Limits{}).Frames("a", 1<<20, now); w != 0 {
		t.Error(w)
	}
}
