// Package seen knows when the core first saw the rows whose sources don't know their age: whoever
// came first stays first, over restarts too where there is a directory for that. seen.go has the
// times, file.go keeps them.
package seen

import (
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/environment"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Bounds of what is known.
const (
	// most is how many rows have a time. Of more, those that are gone are forgotten first; what
	// comes beyond is as new whenever it is said.
	most = 200_000
	// keep is how long a row that is gone keeps its time, for who comes back.
	keep = 24 * time.Hour
	// sweepEvery is how often it is looked which rows are gone.
	sweepEvery = 10 * time.Minute
	// apart is how far apart two times are at least: a thousand ranks fit between them.
	apart = 2 * time.Microsecond
	// MaxRank is how far before the time of its moment a row may be placed, in nanoseconds.
	MaxRank = 1000
)

// times of a row.
type times struct {
	// first is when it was first seen; 0: it was there when the core began to look. gone is since
	// when nobody has it; 0: somebody does. Both are Unix times in nanoseconds.
	first, gone int64
}

// Seen is what is known. A nil one gives all rows the time at which it began to look.
type Seen struct {
	path string

	mu    sync.Mutex
	rows  map[environment.Name]times
	bound int
	// knew: there is knowledge of an earlier run, so that what it doesn't have is new.
	knew bool
	// moment is the time of what comes until the next commit; 0: none has come.
	moment, last int64
	swept        time.Time
	dirty        bool
	wake         chan struct{}
}

// New returns one that knows nothing and keeps nothing.
func New() *Seen {
	return &Seen{rows: map[environment.Name]times{}, bound: most, wake: make(chan struct{}, 1)}
}

// Date gives the undated rows among some of a table the time at which each was first seen. started:
// the core serves; what comes before, with no knowledge of an earlier run, was there already.
func (s *Seen) Date(table string, rows []*pb.Row, started bool, now time.Time) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range rows {
		if r.Undated {
			rank := min(max(r.Created, -MaxRank), 0)
			r.Created = s.first(environment.Name{Table: table, Key: r.Key}, started, now) + rank
		}
	}
}

func (s *Seen) first(n environment.Name, started bool, now time.Time) int64 {
	t, known := s.rows[n]
	switch {
	case known && t.gone == 0:
		return t.first
	case !known:
		if started || s.knew {
			t.first = s.now(now)
		}
		if len(s.rows) >= s.bound && !s.forgetOne() {
			return t.first
		}
	}
	t.gone = 0
	s.rows[n] = t
	s.touch()
	return t.first
}

// now is the time of all rows that come between two commits: later than any before.
func (s *Seen) now(now time.Time) int64 {
	if s.moment == 0 {
		s.moment = max(now.UnixNano(), s.last+int64(apart))
		s.last = s.moment
	}
	return s.moment
}

// forgetOne makes room for a row: that which is gone for longest goes.
func (s *Seen) forgetOne() bool {
	var oldest environment.Name
	var since int64
	for n, t := range s.rows {
		if t.gone != 0 && (since == 0 || t.gone < since) {
			oldest, since = n, t.gone
		}
	}
	delete(s.rows, oldest)
	return since != 0
}

// Committed ends a moment: what comes from now on came later. has reports whether anybody has a
// row; it is asked now and then, and what nobody has for long is forgotten.
func (s *Seen) Committed(has func(environment.Name) bool, now time.Time) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moment = 0
	if now.Sub(s.swept) < sweepEvery {
		return
	}
	s.swept = now
	for n, t := range s.rows {
		switch there := has(n); {
		case there && t.gone != 0:
			t.gone = 0
		case !there && t.gone == 0:
			t.gone = now.UnixNano()
		case !there && now.Sub(time.Unix(0, t.gone)) > keep:
			delete(s.rows, n)
			s.touch()
			continue
		default:
			continue
		}
		s.rows[n] = t
		s.touch()
	}
}

// touch has what is known written soon.
func (s *Seen) touch() {
	s.dirty = true
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
