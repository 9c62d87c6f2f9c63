package xds

import (
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/view"
)

// asking is a subscription to names of which some have no answer yet.
type asking struct {
	of *subscription
	// now is how many of them the source was asked for at once; all: all of them.
	now int
	all bool
	// next is when it is worth to look for answers again: that takes a while for long lists, and
	// there is other work.
	next time.Time
}

// looks is how much longer than a look for answers takes the time to the next one is.
const looks = 50

// again is how long names wait that their peer may not ask for yet.
const again = 200 * time.Millisecond

// hand gives the source what a watch wants, or as much of it as may be asked for now: names that
// nobody has an answer for yet cost plugins work. The rest is handed on when there are answers.
func (st *stream) hand(w *watch, now *view.Snapshot) error {
	s := w.subscription
	if s == nil || len(s.names) == 0 {
		delete(st.asking, w.url)
		w.partial = false
		if err := st.lease.Hold(w.url, budget.Held{}, time.Now()); err != nil {
			return err
		}
		st.connection.Subscribe(w.url, s != nil && s.wildcard, nil)
		return nil
	}
	began := time.Now()
	c := st.machine.common.memo.content(situation{now, s})
	unanswered := c.unanswered
	if now == nil {
		unanswered = len(s.names)
	}
	part, err := st.lease.Ask(w.url,
		budget.Held{Of: s, Names: len(s.names), Bytes: budget.WeighNames(len(s.names), s.bytes), Absent: c.absent},
		unanswered, now == nil, began)
	if err != nil {
		return err
	}
	was := st.asking[w.url]
	next := asking{of: s, now: part, all: part == unanswered || was.of == s && was.all}
	switch {
	case next.all && (was.of != s || !was.all):
		st.connection.Subscribe(w.url, s.wildcard, s.names)
	case !next.all && (was.of != s || part > 0):
		st.connection.Subscribe(w.url, s.wildcard, firstOf(s.names, now, part))
	}
	w.partial = !next.all
	next.next = began.Add(looks * time.Since(began))
	if st.asking[w.url] = next; unanswered == 0 {
		delete(st.asking, w.url)
	}
	if !next.all {
		st.later.Reset(again)
		st.server.metrics.limits.WithLabelValues("maxUnknownNames").Inc()
	}
	return nil
}

// firstOf returns the names that have an answer and the first of the others.
func firstOf(names []string, now *view.Snapshot, others int) []string {
	var first []string
	for n, b := range now.Each(names) {
		if b == nil {
			if others == 0 {
				continue
			}
			others--
		}
		first = append(first, n)
	}
	return first
}

// goOn hands on what has waited for answers.
func (st *stream) goOn(served Served) error {
	for _, w := range st.machine.watches {
		a, waits := st.asking[w.url]
		if !waits {
			continue
		}
		if time.Now().Before(a.next) {
			st.later.Reset(again)
			continue
		}
		if err := st.hand(w, served.Types[w.url]); err != nil {
			return err
		}
	}
	return nil
}
