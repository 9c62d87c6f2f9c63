package patch

import (
	"fmt"
	"time"

	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// MaxUnanswered is how many calls in a row a patch may leave without an answer.
const MaxUnanswered = 5

// calls are what a patch is asked.
type calls struct {
	// live: the patch has a session.
	live bool
	last uint64
	// sent are the open results that the session was asked about, by call; due are the calls that
	// it is to be sent.
	sent map[uint64]*Result
	due  []*pb.Patch
	// missed counts how often in a row it has let calls pass without an answer.
	missed uint
	// unanswered is the same for the session that there is, calls that were answered late not
	// counted; since when, and when it was last so.
	unanswered            int
	missedSince, missedAt time.Time
	// firstMissed is the id of the first of them, askedAt when it was sent.
	firstMissed uint64
	askedAt     time.Time
}

func newCalls() calls { return calls{sent: map[uint64]*Result{}} }

// ask has a call sent if the patch is there; if not, it is asked when it comes back.
func (p *Patcher) ask(r *Result) {
	if !p.calls.live {
		return
	}
	p.calls.last++
	r.call.Id = p.calls.last
	p.calls.sent[r.call.Id] = r
	p.calls.due = append(p.calls.due, r.call)
}

// Calls returns what the session is to be sent, once, in order. The revision is for the sender to
// add.
func (p *Patcher) Calls() []*pb.Patch {
	due := p.calls.due
	p.calls.due = nil
	return due
}

// Begin notes that a session has begun that is asked for the first time.
func (p *Patcher) Begin() { p.calls.live = true }

// Joined notes that a session has begun: it is asked what was asked before, and what failed
// meanwhile. What another version said before doesn't count.
func (p *Patcher) Joined() {
	p.calls.live = true
	clear(p.calls.sent)
	p.calls.unanswered = 0
	if id := p.identity(); p.said != id {
		p.said = id
		p.Forget()
	}
	for k, r := range p.results {
		switch {
		case r.open:
			p.ask(r)
		case r.Failed() != "":
			delete(p.results, k)
			p.round++
		}
	}
}

// Left notes that the session has ended.
func (p *Patcher) Left() { p.calls.live, p.calls.due = false, nil }

// Answered takes an answer, and returns what it is about. Late answers, and those to unknown calls,
// harm nobody: then that is nil.
func (p *Patcher) Answered(m *pb.Patched, now time.Time) *Result {
	r := p.calls.sent[m.Id]
	if r == nil {
		if p.calls.unanswered > 0 && m.Id >= p.calls.firstMissed && m.Id <= p.calls.last { // slow, not hung: to start it again would help nobody
			if p.calls.unanswered = 0; now.Sub(p.calls.askedAt) <= p.Call {
				p.calls.missed = 0 // only patience had become too short
			}
		}
		return nil
	}
	p.calls.missed, p.calls.unanswered = 0, 0
	failed := m.Error
	if failed == "" {
		bodies, spoilt, err := p.decode(r.key.typeURL, m.Resources, r.before(p))
		if err != nil {
			failed = err.Error()
		} else {
			r.changed, r.removed, r.spoilt, r.since = bodies, m.Removes, spoilt, now
		}
	}
	p.close(r, failed, now)
	return r
}

// before returns what stands in for what is spoilt of a resource of an answer: what the patch made
// of it last, or, for a patch that may be left out, what it was given; nil: nothing.
func (r *Result) before(p *Patcher) func(name string) *view.Body {
	return func(name string) *view.Body {
		if last := p.good[goodKey{r.key.typeURL, r.key.name, r.key.facts}]; last != nil {
			for _, b := range last.changed {
				if b.Name() == name {
					return b
				}
			}
		}
		if p.Skips && name == r.key.name {
			return r.input
		}
		return nil
	}
}

// Undelivered notes that a call could not be sent, and returns what it is about; nil: it was not
// open.
func (p *Patcher) Undelivered(id uint64, why error, now time.Time) *Result {
	r := p.calls.sent[id]
	if r != nil {
		p.close(r, fmt.Sprintf("the call's %v", why), now)
	}
	return r
}

// close ends a call; failed says why, if it failed.
func (p *Patcher) close(r *Result, failed string, now time.Time) {
	delete(p.open, r)
	if r.call != nil {
		delete(p.calls.sent, r.call.Id)
	}
	r.open, r.call, r.failed = false, nil, failed
	if failed == "" {
		p.good[goodKey{r.key.typeURL, r.key.name, r.key.facts}] = r
	} else {
		r.since = now
	}
}

// Lateness is what a patch did not answer in time.
type Lateness struct {
	// Results of the calls, failed now.
	Results []*Result
	// First: it is the first time in a row that the session leaves a call without an answer.
	First bool
	// Hangs is why the session is to be ended; nil: it isn't.
	Hangs error
}

// Late fails calls that were not answered in time, and says by at when the others will be. Only of
// a patch that is served, and not tried, it is asked whether it hangs.
func (p *Patcher) Late(now time.Time, served bool, at func(time.Time)) (l Lateness) {
	for r := range p.open {
		if r.until.After(now) {
			at(r.until)
			continue
		}
		if len(l.Results) == 0 {
			l.First, l.Hangs = p.miss(r, served, now)
		}
		p.close(r, "there was no answer in time (limits.call)", now)
		r.late = true
		l.Results = append(l.Results, r)
	}
	return l
}

// miss notes that a call was not answered in time. A plugin that is there and answers none, not
// even late, is started again.
func (p *Patcher) miss(r *Result, served bool, now time.Time) (first bool, hangs error) {
	c := &p.calls
	asked := r.until.Add(-p.patience())
	c.missed++
	if !served || !c.live {
		return false, nil
	}
	if c.unanswered++; c.unanswered == 1 {
		first = true
		c.missedSince, c.firstMissed, c.askedAt = now, r.call.Id, asked
	}
	if c.missedAt = now; c.unanswered >= MaxUnanswered {
		hangs = session.Crossed("call",
			"plugin %s hangs: it answered none of %d calls in a row within limits.call, %s, nor later", p.Name,
			c.unanswered, p.Call)
	}
	return first, hangs
}

// Retry has a live patch asked again about what it did not answer in time, and reports whether
// there is any.
func (p *Patcher) Retry() (any bool) {
	if !p.calls.live {
		return false
	}
	for k, r := range p.results {
		if r.late {
			delete(p.results, k)
			any = true
		}
	}
	if any {
		p.round++
	}
	return any
}

// TryAgain reports whether a patch that left a call without an answer is to be asked again, so that
// it is known whether it answers at all before the next change needs it.
func (p *Patcher) TryAgain(now time.Time, every time.Duration) bool {
	if p.calls.missed == 0 || p.Asking() || now.Sub(p.calls.missedAt) < every {
		return false
	}
	p.calls.missedAt = now
	return true
}

// Stale says since when, and why, what the patch makes of resources may be out of date; empty: it
// isn't.
func (p *Patcher) Stale() (since time.Time, why string) {
	c := &p.calls
	switch {
	case c.unanswered > 0:
		return c.missedSince, fmt.Sprintf("hung: %d calls in a row without an answer", c.unanswered)
	case c.missed > 0 && !c.missedSince.IsZero():
		return c.missedSince, "late: it answers calls after limits.call"
	}
	return time.Time{}, ""
}
