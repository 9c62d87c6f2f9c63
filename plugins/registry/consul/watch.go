package consul

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// watch is one thing that is asked about again and again: the list of a datacenter's services, or,
// with a name, the instances of one.
type watch struct {
	datacenter, name string
	// index is that of the last answer that counted; 0: there was none. had is how much it had:
	// names or instances.
	index    uint64
	had      int
	filtered bool
	// verify: the next question is a consistent one, as the answer before would take something
	// away.
	verify bool
	// unlisted: the list has the service no more. It is gone when a consistent answer says so, too.
	unlisted bool
	// dropped: nobody wants to know any more.
	dropped  bool
	failures int
	// asked is when it was asked last, changed when an answer was another than before, moved when
	// the index last was another, the first one too, and sure when an answer last came from the
	// servers' own state.
	asked, changed, moved, sure time.Time
	// streams: answers come from a view that Consul keeps by a stream of events. direct: this view
	// lags for good, and is asked no more.
	streams, direct bool
}

func (w *watch) lists() bool { return w.name == "" }

// place is where its service is found: DATACENTER/NAME.
func (w *watch) place() string { return w.datacenter + "/" + w.name }

// String names what it asks about.
func (w *watch) String() string {
	what := "the list of services"
	if !w.lists() {
		what = "service " + w.name
	}
	if w.datacenter != "" {
		what += " in " + w.datacenter
	}
	return what
}

// note keeps what an answer that counts says of when news came, and from where.
func (w *watch) note(a answer, before uint64, now time.Time) {
	if before != 0 && before != w.index {
		w.changed = now
	}
	if before != w.index {
		w.moved = now
	}
	if a.streamed {
		w.streams = true
	} else {
		w.sure = now
	}
}

// surely is how often a view of Consul's that nothing changes is compared with the servers' state.
const surely = 10 * time.Minute

// settles is how long a view may be believed from now on, 0: no longer. A view that begins while
// instances are registered may lack some of them for good, though it moves on. So it is compared
// with the servers' state once nothing has changed for a while, and seldom after that.
func (w *watch) settles(now time.Time, while time.Duration) time.Duration {
	at := w.sure.Add(surely)
	if quiet := w.moved.Add(while); w.sure.Before(quiet) && quiet.Before(at) {
		at = quiet
	}
	if !w.streams || w.direct {
		return surely
	}
	if d := at.Sub(now); d >= 100*time.Millisecond { // less is nothing to wait for
		return d
	}
	return 0
}

// question is what is asked next. What is asked for the first time, and what is made sure of, is
// asked of the leader, and answered at once. A wait of 0 is for the servers' state as it is.
func (w *watch) question(wait time.Duration) question {
	if w.index == 0 || w.verify || w.unlisted || w.lists() && w.failures > 0 { // of a list it is known soon that Consul is back
		return question{datacenter: w.datacenter, consistent: true}
	}
	if wait == 0 {
		return question{datacenter: w.datacenter}
	}
	return question{datacenter: w.datacenter, index: w.index, wait: wait, direct: w.direct}
}

// verdict is what an answer is good for.
type verdict int

const (
	// counts: it is what there is.
	counts verdict = iota
	// doubtful: it would take things away, and comes from a server that may not know all yet: one
	// that was just started, or is behind. It is asked for again, consistently.
	doubtful
	// hides: the token may see less than before. What there was stays.
	hides
	// fails: it is none.
	fails
	// gone: the service is no more.
	gone
	// nothingNew: what there is stays, for there is nothing else.
	nothingNew
)

// Reasons why an answer is none.
var (
	errNull   = errors.New("the answer is null where a list belongs")
	errIndex  = errors.New("the answer has no X-Consul-Index: is it Consul that answers?")
	errLeader = errors.New("the server that answers knows of no leader")
	errBlind  = errors.New("the token may see nothing of what there is" + rights)
)

// judge says what an answer is good for, and notes it. The error is why it fails. Source: Consul,
// "Blocking Queries", implementation details: an index of 0 is none, and one that goes backwards is
// one of another history.
func (w *watch) judge(q question, a answer) (verdict, error) {
	n := a.count()
	switch {
	case a.err != nil:
		return fails, a.err
	case a.index == 0:
		return fails, errIndex
	case !a.leader:
		return fails, errLeader
	case a.same:
		w.failures = 0
		return nothingNew, nil
	case !q.consistent && (a.index < w.index || n < w.had):
		w.verify = true
		w.direct = w.direct || a.streamed && a.index < w.index
		return doubtful, nil
	case w.index == 0 && w.lists() && n == 0 && (a.filtered || a.anonymous):
		return fails, errBlind
	case a.anonymous && n == 0 && w.had > 0 && !w.unlisted:
		return hides, nil
	case w.index != 0 && a.filtered && (!w.filtered && n < w.had || w.unlisted && n == 0):
		return hides, nil
	case n == 0 && w.unlisted:
		return gone, nil
	}
	w.direct = w.direct && a.index >= w.index // otherwise it is another history, with views of its own
	w.index, w.had, w.filtered, w.verify, w.unlisted, w.failures = a.index, n, a.filtered, false, false, 0
	return counts, nil
}

// firstRetry is how long it takes until something is asked again that failed once.
const firstRetry = 250 * time.Millisecond

// retry returns how long to wait after a failure: twice as long each time, up to most, and up to a
// half less, so that not all ask at once.
func (w *watch) retry(most time.Duration) time.Duration {
	d := firstRetry << min(w.failures, 20)
	if w.failures++; d > most || d <= 0 {
		d = most
	}
	return d - rand.N(d/2+1)
}

// errYield ends a question that waits where another has to be asked.
var errYield = errors.New("another question has to be asked")

// grace is what an answer may take beyond what Consul waits, which is up to a sixteenth longer than
// it is asked to.
const grace = 10 * time.Second

// ask asks, and returns the answer; ctx ends it.
func (w *watch) ask(ctx context.Context, c client, q question) answer {
	ctx, cancel := context.WithTimeoutCause(ctx, q.wait+q.wait/16+grace, errors.New("no answer in time"))
	defer cancel()
	var a answer
	if w.lists() {
		a = c.services(ctx, q)
	} else {
		a = c.instances(ctx, w.name, q)
	}
	if a.err != nil && ctx.Err() != nil {
		a.err = context.Cause(ctx)
	}
	return a
}
