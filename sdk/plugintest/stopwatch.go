package plugintest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Timing is how long a plugin took for one kind of question, then and now, at the core's end of the
// session.
type Timing struct {
	// What was asked and answered: `State, Done`.
	What      string
	Then, Now Spread
}

// Spread of a number of durations.
type Spread struct {
	Count         int
	P50, P99, Max time.Duration
}

// pairs are questions and their answers, in the order in which they are told.
var pairs = []string{"Hello, Ready", "Hello, Synced", "State, Done", "Attach, Place", "Want, Wanted", "Patch, Patched", "Authenticate, Caller"}

// stopwatch measures from questions to answers. Its methods may be called by several goroutines.
type stopwatch struct {
	began time.Time
	mu    sync.Mutex
	asked map[string]time.Duration
	took  map[string][]time.Duration
}

func newStopwatch() *stopwatch {
	return &stopwatch{began: time.Now(), asked: map[string]time.Duration{}, took: map[string][]time.Duration{}}
}

// see is at, now.
func (s *stopwatch) see(fromCore bool, frame []byte) { s.at(time.Since(s.began), fromCore, frame) }

// at takes a message that was said at a time.
func (s *stopwatch) at(at time.Duration, fromCore bool, frame []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fromCore {
		var m pb.FromCore
		if m.Unmarshal(frame) == nil {
			s.question(at, &m)
		}
		return
	}
	var m pb.FromPlugin
	if m.Unmarshal(frame) == nil {
		s.answer(at, &m)
	}
}

func (s *stopwatch) question(at time.Duration, m *pb.FromCore) {
	switch {
	case m.Hello != nil:
		s.asked["Hello, Ready"], s.asked["Hello, Synced"] = at, at
	case m.State != nil && m.State.Revision != nil:
		s.asked[key("State, Done", m.State.Revision.Number)] = at
	case m.Attach != nil:
		s.asked[key("Attach, Place", m.Attach.Connection)] = at
	case m.Want != nil:
		s.asked[key("Want, Wanted", m.Want.Id)] = at
	case m.Patch != nil:
		s.asked[key("Patch, Patched", m.Patch.Id)] = at
	case m.Authenticate != nil:
		s.asked[key("Authenticate, Caller", m.Authenticate.Id)] = at
	}
}

func (s *stopwatch) answer(at time.Duration, m *pb.FromPlugin) {
	switch {
	case m.Ready != nil:
		s.end(at, "Hello, Ready", "Hello, Ready")
	case m.Synced != nil:
		s.end(at, "Hello, Synced", "Hello, Synced")
	case m.Done != nil && m.Done.Revision != nil:
		s.end(at, "State, Done", key("State, Done", m.Done.Revision.Number))
	case m.Place != nil:
		s.end(at, "Attach, Place", key("Attach, Place", m.Place.Connection))
	case m.Wanted != nil:
		s.end(at, "Want, Wanted", key("Want, Wanted", m.Wanted.Id))
	case m.Patched != nil:
		s.end(at, "Patch, Patched", key("Patch, Patched", m.Patched.Id))
	case m.Caller != nil:
		s.end(at, "Authenticate, Caller", key("Authenticate, Caller", m.Caller.Id))
	}
}

func key(pair string, id uint64) string { return fmt.Sprint(pair, " ", id) }

func (s *stopwatch) end(at time.Duration, pair, key string) {
	if asked, ok := s.asked[key]; ok {
		delete(s.asked, key)
		s.took[pair] = append(s.took[pair], at-asked)
	}
}

// timings sets then beside now.
func timings(then, now *stopwatch) (list []Timing) {
	then.mu.Lock()
	defer then.mu.Unlock()
	now.mu.Lock()
	defer now.mu.Unlock()
	for _, pair := range pairs {
		if t := (Timing{pair, spread(then.took[pair]), spread(now.took[pair])}); t.Then.Count+t.Now.Count > 0 {
			list = append(list, t)
		}
	}
	return list
}

func spread(all []time.Duration) (s Spread) {
	if len(all) == 0 {
		return s
	}
	sorted := slices.Sorted(slices.Values(all))
	at := func(percent int) time.Duration { return sorted[(len(sorted)*percent+99)/100-1] }
	return Spread{Count: len(all), P50: at(50), P99: at(99), Max: sorted[len(sorted)-1]}
}
