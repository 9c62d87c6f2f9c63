package polling

import (
	"cmp"
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
	// PerOwner is how many of them one owner may have; 0: all. The second half of the places is for
	// owners that have none.
	PerOwner int
}

// Schedule decides what is to be fetched when. It has no clock and no goroutine of its own.
type Schedule[W comparable] struct {
	pace Pace
	all  map[string]*item[W]
	// last is the owner that a place was given to last.
	last string
}

// item is something that is wanted.
type item[W comparable] struct {
	want W
	// found is what was fetched last; empty before the first success.
	found string
	// owners are who want it; by is the one in whose place it is being fetched.
	owners []string
	by     string
	// due is when to fetch it next; busy: it is being fetched, since began.
	due, began time.Time
	busy       bool
	failures   int
}

// NewSchedule returns one of which nothing is wanted.
func NewSchedule[W comparable](p Pace) *Schedule[W] {
	return &Schedule[W]{pace: p, all: map[string]*item[W]{}}
}

// Adopt takes what is wanted now, and returns the keys of those that aren't any more and had been
// fetched. An item whose source changed is due at once; its old value stays until the new one
// arrives.
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

// Own says who wants what, by its key. What nobody is named for is of one owner without a name.
func (s *Schedule[W]) Own(owners map[string][]string) {
	for key, x := range s.all {
		x.owners = owners[key]
	}
}

// Take returns those that are due, as far as fetches are free; they are busy then. Owners take
// turns; each has those first that wait the longest. What has not been fetched yet and has not
// failed goes before what has failed.
func (s *Schedule[W]) Take(now time.Time) map[string]W {
	q := s.queues(now)
	out := map[string]W{}
	for {
		owner, ok := q.turn(s.last)
		if !ok {
			return out
		}
		key := q.waiting[owner][0]
		x := s.all[key]
		x.busy, x.by, x.began = true, owner, now
		q.give(owner, key)
		s.last, out[key] = owner, x.want
	}
}

// queues returns what is due, by who wants it, the longest waiting first.
func (s *Schedule[W]) queues(now time.Time) *queues {
	q := &queues{pace: s.pace, free: s.pace.Concurrent, waiting: map[string][]string{}, held: map[string]int{}}
	for _, key := range slices.Sorted(maps.Keys(s.all)) {
		switch x := s.all[key]; {
		case x.busy:
			q.free--
			q.held[x.by]++
		case !x.due.After(now):
			for _, owner := range x.whose() {
				q.waiting[owner] = append(q.waiting[owner], key)
			}
		}
	}
	for _, keys := range q.waiting {
		slices.SortStableFunc(keys, func(a, b string) int {
			x, y := s.all[a], s.all[b]
			return cmp.Or(cmp.Compare(min(x.failures, 1), min(y.failures, 1)), x.due.Compare(y.due))
		})
	}
	return q
}

func (x *item[W]) whose() []string {
	if len(x.owners) == 0 {
		return []string{""}
	}
	return x.owners
}

// Next is when something becomes due that there is a place for; false if nothing waits for a time
// alone.
func (s *Schedule[W]) Next() (at time.Time, ok bool) {
	q := s.queues(time.Time{})
	for _, x := range s.all {
		if !x.busy && (!ok || x.due.Before(at)) && slices.ContainsFunc(x.whose(), q.admits) {
			at, ok = x.due, true
		}
	}
	return at, ok
}

// Tried reports whether all that is wanted was fetched once, or could not be.
func (s *Schedule[W]) Tried() bool {
	for _, x := range s.all {
		if x.found == "" && x.failures == 0 {
			return false
		}
	}
	return true
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

// Failed notes that a fetch failed; what there is stays. It returns when to try again: what took
// long to fail waits for as long at least.
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
	if !x.began.IsZero() {
		wait = max(wait, now.Sub(x.began))
	}
	x.failures++
	x.due = now.Add(wait)
	return wait
}
