package jwks

import (
	"slices"
	"testing"
	"time"
)

func TestSchedule(t *testing.T) {
	now := time.Unix(1000, 0)
	s := newSchedule(Config{Refresh: time.Hour, Retry: time.Second, MaxRetry: 3 * time.Second, Concurrent: 2})
	all := map[string]want{"a": {URI: "a"}, "b": {URI: "b"}, "c": {URI: "c"}}
	if gone := s.adopt(all, now); len(gone) > 0 {
		t.Errorf("gone: %v", gone)
	}
	if got := s.take(now); len(got) != 2 {
		t.Errorf("%d at once, want no more than 2", len(got))
	}
	if _, ok := s.next(); ok {
		t.Error("nothing is due by time alone while all fetches are busy")
	}
	if !s.fetched("a", all["a"], "keys", now) || s.fetched("a", all["a"], "keys", now) {
		t.Error("the same keys are new once")
	}
	if got := s.take(now); len(got) != 1 || got["c"].URI != "c" {
		t.Errorf("next %v, want c", got)
	}
	var waits []time.Duration
	for range 4 {
		waits = append(waits, s.failed("b", all["b"], now))
	}
	if want := []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second}; !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
	if at, ok := s.next(); !ok || !at.Equal(now.Add(3*time.Second)) {
		t.Errorf("next at %v %v", at, ok)
	}
	// What is got otherwise is due at once, and what an old fetch brings of it doesn't count.
	if gone := s.adopt(map[string]want{"a": {URI: "a", Discover: true}, "c": all["c"]}, now); len(gone) > 0 {
		t.Errorf("gone: %v", gone)
	}
	if got := s.take(now); !got["a"].Discover {
		t.Errorf("due: %v", got)
	}
	if s.fetched("a", all["a"], "old", now) || s.fetched("b", all["b"], "b", now) {
		t.Error("what nobody asks for any more counts")
	}
	if gone := s.adopt(nil, now); !slices.Equal(gone, []string{"a"}) {
		t.Errorf("gone: %v", gone)
	}
}
