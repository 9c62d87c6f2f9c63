package polling

import (
	"slices"
	"testing"
	"time"
)

type want struct {
	URI      string
	Discover bool
}

func TestSchedule(t *testing.T) {
	now := time.Unix(1000, 0)
	s := NewSchedule[want](Pace{Refresh: time.Hour, Retry: time.Second, MaxRetry: 3 * time.Second, Concurrent: 2})
	all := map[string]want{"a": {URI: "a"}, "b": {URI: "b"}, "c": {URI: "c"}}
	if gone := s.Adopt(all, now); len(gone) > 0 {
		t.Errorf("gone: %v", gone)
	}
	if got := s.Take(now); len(got) != 2 {
		t.Errorf("%d at once, want no more than 2", len(got))
	}
	if _, ok := s.Next(); ok {
		t.Error("nothing is due by time alone while all fetches are busy")
	}
	if !s.Fetched("a", all["a"], "keys", now) || s.Fetched("a", all["a"], "keys", now) {
		t.Error("the same keys are new once")
	}
	if got := s.Take(now); len(got) != 1 || got["c"].URI != "c" {
		t.Errorf("next %v, want c", got)
	}
	var waits []time.Duration
	for range 4 {
		waits = append(waits, s.Failed("b", all["b"], now))
	}
	if want := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second}; !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
	if at, ok := s.Next(); !ok || !at.Equal(now.Add(3*time.Second)) {
		t.Errorf("next at %v %v", at, ok)
	}
	// What is got otherwise is due at once, and what an old fetch brings of it doesn't count.
	if gone := s.Adopt(map[string]want{"a": {URI: "a", Discover: true}, "c": all["c"]}, now); len(gone) > 0 {
		t.Errorf("gone: %v", gone)
	}
	if got := s.Take(now); !got["a"].Discover {
		t.Errorf("due: %v", got)
	}
	if s.Fetched("a", all["a"], "old", now) || s.Fetched("b", all["b"], "b", now) {
		t.Error("what nobody asks for any more counts")
	}
	if gone := s.Adopt(nil, now); !slices.Equal(gone, []string{"a"}) {
		t.Errorf("gone: %v", gone)
	}
}
