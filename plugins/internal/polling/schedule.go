package polling

import (
	"maps"
	"slices"
	"time"
)

// Pace is how often things are fetched.
type Pace struct {
	// Refresh is how old something may become until it is fetched again.
	Refresh time.Duration
	// Retry is the first wait after a failure; each further one doubles it, up to MaxRetry.
	Retry, MaxRetry time.Duration
	// Concurrent is how many are fetched at once.
	Concurrent int
}

// Schedule decides what is to be fetched when. It has no clock and no goroutine of its own.
type Schedule[W comparable] struct {
	pace Pace
	all  map[string]*item[W]
}

// item is something that is wanted.
type item[W comparable] struct {
	want W
	// found is what was fetched last; empty before the first success.
	found string
	// due is when to fetch it next; busy: it is being fetched.
	due      time.Time
	busy     bool
	failures int
}

// NewSchedule returns one of which nothing is wanted.
func NewSchedule[W comparable](p Pace) *Schedule[W] {
	return &Schedule[W]{pace: p, all: map[string]*item[W]{}}
}

// Adopt takes what is wanted now, and returns the keys of those that aren't any more and had been
// fetched. What is got otherwise than before is due at once; it stays what it was until it is
// there.
func (s *Schedule[W]) Adopt(wanted map[string]W, now time.Time) (gone []string) {
	for _, key := range slices.Sorted(maps.Keys(s.all)) {
		if _, ok := wanted[key]; !ok {
			if s.all[key].found != "" {
				gone = append(gone, key)
			}
			delete(s.all, key)
		}
	}
	for key, w := range wanted {
		have := s.all[key]
		switch {
		case have == nil:
			s.all[key] = &item[W]{want: w, due: now}
		case have.want != w:
			have.want, have.due, have.failures = w, now, 0
		}
	}
	return gone
}

// Take returns those that are due, the longest waiting first, as far as fetches are free; they are
// busy then.
func (s *Schedule[W]) Take(now time.Time) map[string]W {
	var due []string
	free := s.pace.Concurrent
	for _, key := range slices.Sorted(maps.Keys(s.all)) {
		switch x := s.all[key]; {
		case x.busy:
			free--
		case !x.due.After(now):
			due = append(due, key)
		}
	}
	slices.SortStableFunc(due, func(a, b string) int { return s.all[a].due.Compare(s.all[b].due) })
	out := map[string]W{}
	for _, key := range due[:max(0, min(free, len(due)))] {
		s.all[key].busy = true
		out[key] = s.all[key].want
	}
	return out
}

// Next is when something becomes due; false if nothing waits for a time alone.
func (s *Schedule[W]) Next() (at time.Time, ok bool) {
	free := s.pace.Concurrent
	for _, x := range s.all {
		switch {
		case x.busy:
			free--
		case !ok || x.due.Before(at):
			at, ok = x.due, true
		}
	}
	return at, ok && free > 0
}

// Fetched notes what a fetch brought, and reports whether that is new. What nobody wants any more,
// or wants otherwise, is nothing.
func (s *Schedule[W]) Fetched(key string, w W, found string, now time.Time) bool {
	x := s.all[key]
	if x == nil {
		return false
	}
	x.busy = false
	if x.want != w {
		return false
	}
	x.due, x.failures = now.Add(s.pace.Refresh), 0
	if x.found == found {
		return false
	}
	x.found = found
	return true
}

// Failed notes that a fetch failed; what there is stays. It returns when to try again.
func (s *Schedule[W]) Failed(key string, w W, now time.Time) time.Duration {
	x := s.all[key]
	if x == nil {
		return 0
	}
	x.busy = false
	if x.want != w {
		return 0
	}
	wait := s.pace.MaxRetry
	if x.failures < 30 {
		wait = min(wait, s.pace.Retry<<x.failures)
	}
	x.failures++
	x.due = now.Add(wait)
	return wait
}
