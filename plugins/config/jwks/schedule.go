package jwks

import (
	"maps"
	"slices"
	"time"
)

// schedule decides what is to be fetched when. It has no clock and no goroutine of its own.
type schedule struct {
	config Config
	sets   map[string]*set
}

// set is a key set that is wanted.
type set struct {
	want
	// keys that were fetched last; empty before the first success.
	keys string
	// due is when to fetch it next; busy: it is being fetched.
	due      time.Time
	busy     bool
	failures int
}

func newSchedule(c Config) *schedule { return &schedule{config: c, sets: map[string]*set{}} }

// adopt takes what is wanted now, and returns the keys of the sets that aren't any more and had been fetched. What is got otherwise than
// before is due at once; it keeps its keys until it is there.
func (s *schedule) adopt(wanted map[string]want, now time.Time) (gone []string) {
	for _, key := range slices.Sorted(maps.Keys(s.sets)) {
		if _, ok := wanted[key]; !ok {
			if s.sets[key].keys != "" {
				gone = append(gone, key)
			}
			delete(s.sets, key)
		}
	}
	for key, w := range wanted {
		have := s.sets[key]
		switch {
		case have == nil:
			s.sets[key] = &set{want: w, due: now}
		case have.want != w:
			have.want, have.due, have.failures = w, now, 0
		}
	}
	return gone
}

// take returns the sets that are due, the longest waiting first, as far as fetches are free; they are busy then.
func (s *schedule) take(now time.Time) map[string]want {
	var due []string
	free := s.config.Concurrent
	for _, key := range slices.Sorted(maps.Keys(s.sets)) {
		switch x := s.sets[key]; {
		case x.busy:
			free--
		case !x.due.After(now):
			due = append(due, key)
		}
	}
	slices.SortStableFunc(due, func(a, b string) int { return s.sets[a].due.Compare(s.sets[b].due) })
	out := map[string]want{}
	for _, key := range due[:max(0, min(free, len(due)))] {
		s.sets[key].busy = true
		out[key] = s.sets[key].want
	}
	return out
}

// next is when something becomes due; false if nothing waits for a time alone.
func (s *schedule) next() (at time.Time, ok bool) {
	free := s.config.Concurrent
	for _, x := range s.sets {
		switch {
		case x.busy:
			free--
		case !ok || x.due.Before(at):
			at, ok = x.due, true
		}
	}
	return at, ok && free > 0
}

// fetched notes what a fetch brought, and reports whether that is new. What nobody wants any more, or wants otherwise, is nothing.
func (s *schedule) fetched(key string, w want, keys string, now time.Time) bool {
	x := s.sets[key]
	if x == nil {
		return false
	}
	x.busy = false
	if x.want != w {
		return false
	}
	x.due, x.failures = now.Add(s.config.Refresh), 0
	if x.keys == keys {
		return false
	}
	x.keys = keys
	return true
}

// failed notes that a fetch failed; the keys that there are stay. It returns when to try again.
func (s *schedule) failed(key string, w want, now time.Time) time.Duration {
	x := s.sets[key]
	if x == nil {
		return 0
	}
	x.busy = false
	if x.want != w {
		return 0
	}
	wait := s.config.MaxRetry
	if x.failures < 30 {
		wait = min(wait, s.config.Retry<<x.failures)
	}
	x.failures++
	x.due = now.Add(wait)
	return wait
}
