package trial

import (
	"errors"
	"iter"
	"time"
)

// ErrLate is why a meeting was not held: its moment did not come in time.
var ErrLate = errors.New("it did not get up to date in time")

// Meetings wait for a moment at which a trial has said what there is to say. T is what they are
// about.
type Meetings[T any] struct {
	waiting []*Meeting[T]
}

// Meeting is one of them.
type Meeting[T any] struct {
	Of    T
	until time.Time // zero: any revision will do
}

// Call waits for a moment at which the trial has said all about the revision that is served; for
// patience no revision is to begin, so that the moment comes. Without patience it is enough that it
// has said all about some revision, however long that takes.
func (ms *Meetings[T]) Call(of T, patience time.Duration, now time.Time) *Meeting[T] {
	m := &Meeting[T]{Of: of}
	if patience > 0 {
		m.until = now.Add(patience)
	}
	ms.waiting = append(ms.waiting, m)
	return m
}

// Leave takes a meeting back: nobody waits for it any more.
func (ms *Meetings[T]) Leave(m *Meeting[T]) {
	for i, w := range ms.waiting {
		if w == m {
			ms.waiting = append(ms.waiting[:i:i], ms.waiting[i+1:]...)
			return
		}
	}
}

// Over yields, one after the other, the meetings that can be held now, and those that can't be any
// more, with the reason. ready reports whether the moment for one has come: rest, for the revision
// that is served. at is told when to look again.
func (ms *Meetings[T]) Over(now time.Time, at func(time.Time), ready func(of T, rest bool) (bool, error)) iter.Seq2[*Meeting[T], error] {
	return func(yield func(*Meeting[T], error) bool) {
		waiting := ms.waiting
		ms.waiting = nil
		for i, m := range waiting {
			come, err := ready(m.Of, !m.until.IsZero())
			if err == nil && !come {
				if m.until.IsZero() || m.until.After(now) {
					at(m.until)
					ms.waiting = append(ms.waiting, m)
					continue
				}
				err = ErrLate
			}
			if !yield(m, err) {
				ms.waiting = append(ms.waiting, waiting[i+1:]...)
				return
			}
		}
	}
}

// Hold reports whether no revision may begin: somebody waits for a moment of rest.
func (ms *Meetings[T]) Hold() bool {
	for _, m := range ms.waiting {
		if !m.until.IsZero() {
			return true
		}
	}
	return false
}
