package placement

import (
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/deadline"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Asked is what a generator was asked of its views, and has not answered.
type Asked struct {
	last uint64
	open map[uint64]*pb.Want
	// held are those that the revision in the making waits for.
	held map[uint64]bool
	// since is when it last answered, or began to owe; heard when it last answered.
	since deadline.Moment
	heard time.Time
}

// NewAsked returns what a generator is asked that was asked nothing yet.
func NewAsked() *Asked {
	return &Asked{open: map[uint64]*pb.Want{}, held: map[uint64]bool{}}
}

// Ask gives a question a number. hold has the revision in the making wait for its answer.
func (a *Asked) Ask(m *pb.Want, hold bool, now deadline.Moment) {
	a.last++
	m.Id = a.last
	if len(a.open) == 0 {
		a.since = now
	}
	a.open[m.Id] = m
	if hold {
		a.held[m.Id] = true
	}
}

// Last is the number of the last question.
func (a *Asked) Last() uint64 { return a.last }

// Answered takes an answer, and returns what it is about; nil: that was never asked, or is answered
// already.
func (a *Asked) Answered(id uint64, now deadline.Moment) *pb.Want {
	m := a.open[id]
	if m != nil {
		a.Undelivered(id)
		a.since, a.heard = now, now.At
	}
	return m
}

// Undelivered forgets a question that could not be sent.
func (a *Asked) Undelivered(id uint64) {
	delete(a.open, id)
	delete(a.held, id)
}

// Promise has the revision in the making wait for those of the open questions about a view that a
// connection waits for, too: for all of it if it wants that, and for names that are promised to it.
func (a *Asked) Promise(v *view.View, w Wish, promised func(name string) bool) {
	for id, m := range a.open {
		if m.View == v.ID && m.Type == v.Type && (m.Wildcard && w.Wildcard || slices.ContainsFunc(m.Names, promised)) {
			a.held[id] = true
		}
	}
}

// Holds reports whether the revision in the making waits for an answer.
func (a *Asked) Holds() bool { return len(a.held) > 0 }

// GiveUp has the revision not wait any longer, and reports whether it did.
func (a *Asked) GiveUp() (held bool) {
	held = len(a.held) > 0
	clear(a.held)
	return held
}

// Len is how many questions are open.
func (a *Asked) Len() int { return len(a.open) }

// Since is when the generator last answered a question, or began to owe an answer.
func (a *Asked) Since() deadline.Moment { return a.since }

// Heard is when it last answered one; the zero time: never.
func (a *Asked) Heard() time.Time { return a.heard }
