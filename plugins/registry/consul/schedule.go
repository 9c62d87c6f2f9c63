package consul

import (
	"container/heap"
	"context"
	"time"
)

// schedule says what is asked when, and how long it may wait for news. At most config.Watches
// questions are under way. While there are no more watches than that, each waits at Consul all the
// time. Otherwise they take turns, such that each is asked every Refresh; those whose answers
// changed of late go on waiting, in half of the places at most. It has no clock and starts nothing.
type schedule struct {
	config *Config
	queue  queue
	flying map[*watch]*flight
	hot    int
}

// flight is a question that is under way.
type flight struct {
	since time.Time
	wait  time.Duration
	hot   bool
	stop  context.CancelCauseFunc
}

// recent is for how long a watch whose answer changed is more likely to change again.
const recent = 5 * time.Minute

func newSchedule(c *Config) *schedule { return &schedule{config: c, flying: map[*watch]*flight{}} }

// push has a watch asked at a time.
func (s *schedule) push(w *watch, due time.Time) { heap.Push(&s.queue, item{due, w}) }

// next takes the watch that is to be asked now, and how long it may wait; nil: there is none.
func (s *schedule) next(now time.Time) (*watch, time.Duration, bool) {
	for len(s.queue) > 0 && s.queue[0].watch.dropped {
		heap.Pop(&s.queue)
	}
	if len(s.queue) == 0 || s.queue[0].due.After(now) || len(s.flying) >= s.config.Watches {
		return nil, 0, false
	}
	w := heap.Pop(&s.queue).(item).watch
	wait, hot := s.fair(1), false
	switch {
	case w.lists(), wait >= s.config.Wait:
		wait = s.config.Wait
	case canStop && now.Sub(w.changed) < recent && s.hot < s.config.Watches/2:
		wait, hot = s.config.Wait, true
	}
	return w, min(wait, w.settles(now, s.config.Refresh)), hot
}

// fair is how long each may wait so that all are asked every Refresh; more are those that are
// neither in the queue nor under way.
func (s *schedule) fair(more int) time.Duration {
	all := len(s.queue) + len(s.flying) + more
	if all <= s.config.Watches {
		if canStop {
			return s.config.Wait
		}
		return min(s.config.Wait, s.config.Refresh) // what comes to need the place can't take it
	}
	// Its own turn, and those of others before it.
	return min(s.config.Wait, s.config.Refresh*time.Duration(s.config.Watches)/time.Duration(all+s.config.Watches))
}

// starts notes that a watch is being asked; stop ends that.
func (s *schedule) starts(w *watch, now time.Time, wait time.Duration, hot bool, stop context.CancelCauseFunc) {
	w.asked = now
	if s.flying[w] = (&flight{now, wait, hot, stop}); hot {
		s.hot++
	}
}

// ends notes that its answer is in.
func (s *schedule) ends(w *watch) {
	if f := s.flying[w]; f != nil && f.hot {
		s.hot--
	}
	delete(s.flying, w)
}

// hurry ends the question of a watch that is under way, so that it is asked anew at once.
func (s *schedule) hurry(w *watch) {
	if f := s.flying[w]; f != nil {
		f.stop(errYield)
	}
}

// yield ends as many questions as there are watches that are due and have no place, those that have
// waited longest, if they have waited for as long as is fair.
func (s *schedule) yield(now time.Time) {
	if !canStop || len(s.flying) < s.config.Watches {
		return
	}
	fair := s.fair(0)
	for range s.due(now) {
		var oldest *flight
		for w, f := range s.flying {
			if !w.lists() && !f.hot && f.wait > fair && now.Sub(f.since) >= fair && (oldest == nil || f.since.Before(oldest.since)) {
				oldest = f
			}
		}
		if oldest == nil {
			return
		}
		oldest.wait = 0 // it is no candidate any more
		oldest.stop(errYield)
	}
}

// due counts watches that are to be asked now.
func (s *schedule) due(now time.Time) (n int) {
	for _, i := range s.queue {
		if !i.due.After(now) && !i.watch.dropped {
			n++
		}
	}
	return n
}

// alarm is how long nothing is to be done unless an answer comes.
func (s *schedule) alarm(now time.Time) time.Duration {
	const idle, pressed = time.Hour, 50 * time.Millisecond
	switch {
	case len(s.queue) == 0:
		return idle
	case len(s.flying) < s.config.Watches:
		return max(0, s.queue[0].due.Sub(now))
	}
	return max(pressed, s.queue[0].due.Sub(now))
}

type item struct {
	due   time.Time
	watch *watch
}

// queue is a heap: what is due first comes first.
type queue []item

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(item)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}
