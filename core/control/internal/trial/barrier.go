package trial

import (
	"errors"
	"iter"
	"time"
)

// ErrLate is why a barrier was not passed: its moment did not come in time.
var ErrLate = errors.New("it did not get up to date in time")

// Barriers wait for a moment at which a trial has said what there is to say. T is what they are
// about.
type Barriers[T any] struct {
	waiting []*Barrier[T]
}

// Barrier is one of them.
type Barrier[T any] struct {
	Of    T
	until time.Time // zero: any revision will do
}

// Add adds one for the moment at which the trial has said all about the revision that is served;
// for patience no revision is to begin, so that the moment comes. Without patience it is enough
// that it has said all about some revision, however long that takes.
func (bs *Barriers[T]) Add(of T, patience time.Duration, now time.Time) *Barrier[T] {
	b := &Barrier[T]{Of: of}
	if patience > 0 {
		b.until = now.Add(patience)
	}
	bs.waiting = append(bs.waiting, b)
	return b
}

// Leave takes a barrier back: nobody waits for it any more.
func (bs *Barriers[T]) Leave(b *Barrier[T]) {
	for i, w := range bs.waiting {
		if w == b {
			bs.waiting = append(bs.waiting[:i:i], bs.waiting[i+1:]...)
			return
		}
	}
}

// Passed yields, one after the other, the barriers that are passed now, and those that can never
// be, with the reason. ready reports whether the moment for one has come: rest, for the revision
// that is served. at is told when to look again.
func (bs *Barriers[T]) Passed(now time.Time, at func(time.Time), ready func(of T, rest bool) (bool, error)) iter.Seq2[*Barrier[T], error] {
	return func(yield func(*Barrier[T], error) bool) {
		waiting := bs.waiting
		bs.waiting = nil
		for i, b := range waiting {
			come, err := ready(b.Of, !b.until.IsZero())
			if err == nil && !come {
				if b.until.IsZero() || b.until.After(now) {
					at(b.until)
					bs.waiting = append(bs.waiting, b)
					continue
				}
				err = ErrLate
			}
			if !yield(b, err) {
				bs.waiting = append(bs.waiting, waiting[i+1:]...)
				return
			}
		}
	}
}

// Hold reports whether no revision may begin: somebody waits for a moment of rest.
func (bs *Barriers[T]) Hold() bool {
	for _, b := range bs.waiting {
		if !b.until.IsZero() {
			return true
		}
	}
	return false
}
