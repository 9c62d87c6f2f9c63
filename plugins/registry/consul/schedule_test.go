package consul

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// TestSchedule plays two minutes: of however many watches, no more are asked at once than may be,
// and none is asked later than refresh.
func TestSchedule(t *testing.T) {
	for _, n := range []int{5, 10, 11, 300} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			c := configured(t, `{"watches": 10, "refresh": "6s", "wait": "1m"}`)
			s, now := newSchedule(c), time.Unix(1000, 0)
			watches, begun := make([]*watch, n), now
			for i := range watches {
				watches[i] = &watch{name: fmt.Sprint(i), index: 1, asked: now}
				s.push(watches[i], now)
			}
			type flying struct {
				until   time.Time
				stopped bool
			}
			sky := map[*watch]*flying{}
			for ; now.Sub(begun) < 2*time.Minute; now = now.Add(10 * time.Millisecond) {
				for w, f := range sky {
					if f.stopped || !now.Before(f.until) {
						s.ends(w)
						delete(sky, w)
						s.push(w, now)
					}
				}
				s.yield(now)
				for w, wait, hot := s.next(now); w != nil; w, wait, hot = s.next(now) {
					f := &flying{until: now.Add(wait)}
					s.starts(w, now, wait, hot, func(error) { f.stopped = true })
					sky[w] = f
				}
				if len(sky) > 10 {
					t.Fatalf("%d at once", len(sky))
				}
				for _, w := range watches {
					if late := now.Sub(w.asked); sky[w] == nil && late > c.Refresh+100*time.Millisecond {
						t.Fatalf("%v after the start %s was asked %v ago", now.Sub(begun), w.name, late)
					}
				}
			}
		})
	}
}

// TestScheduleNewcomers: while all places are taken by questions that may wait long, newcomers get
// places as soon as is fair, and those that changed of late keep theirs.
func TestScheduleNewcomers(t *testing.T) {
	c := configured(t, `{"watches": 10, "refresh": "2s", "wait": "5m"}`)
	s, now := newSchedule(c), time.Unix(1000, 0)
	stopped := map[string]bool{}
	start := func() (n int) {
		for w, wait, hot := s.next(now); w != nil; w, wait, hot = s.next(now) {
			s.starts(w, now, wait, hot, func(err error) {
				if !errors.Is(err, errYield) {
					t.Error(err)
				}
				stopped[w.name] = true
			})
			n++
		}
		return n
	}
	for i := range 8 {
		w := &watch{name: fmt.Sprint("old", i), index: 1}
		if i < 3 {
			w.changed = now
		}
		s.push(w, now)
	}
	s.push(&watch{}, now) // a list
	start()
	for i := range 10 {
		s.push(&watch{name: fmt.Sprint("new", i)}, now)
	}
	if n := start(); n != 1 {
		t.Errorf("%d newcomers found a place", n)
	}
	now = now.Add(c.Refresh)
	s.yield(now)
	if len(stopped) == 0 || stopped[""] {
		t.Errorf("stopped: %v", stopped)
	}
}
