package xds

import (
	"testing"
	"time"
)

// TestSlow: each stream that has yielded counts once, until it takes something again; where there are many, the next are not waited for as long.
func TestSlow(t *testing.T) {
	var s slow
	streams := make([]stream, manySlow)
	for i := range streams {
		if got := s.patience(time.Second); got != time.Second {
			t.Fatalf("with %d: %v", i, got)
		}
		s.note(&streams[i], true)
		s.note(&streams[i], true)
		if got := s.streams.Load(); got != int32(i+1) {
			t.Fatalf("%d streams, want %d", got, i+1)
		}
	}
	if got := s.patience(time.Second); got != time.Second/shorter {
		t.Errorf("with many: %v", got)
	}
	for range 2 {
		s.note(&streams[0], false)
	}
	if got := s.streams.Load(); got != manySlow-1 {
		t.Errorf("%d streams when one has read", got)
	}
	if got := s.patience(time.Second); got != time.Second {
		t.Errorf("with few again: %v", got)
	}
}
