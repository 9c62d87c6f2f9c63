package xds

import (
	"sync/atomic"
	"time"

	"github.com/coxswain-mesh/coxswain/core/push"
)

// work is what a stream wants its next turn for, as bits.
type work struct {
	bits atomic.Uint32
	// since is when the first of it came, in nanoseconds of the epoch; 0: there is none.
	since atomic.Int64
}

const (
	pushes    uint32 = 1 << iota // a revision is served
	dependent                    // endpoints are new, and perhaps nothing else
	answers                      // the client waits
)

// drain returns what the turn is for, and forgets it.
func (w *work) drain() uint32 { return w.bits.Swap(0) }

// waited returns for how long the turn was waited for, and forgets it.
func (w *work) waited(now time.Time) time.Duration {
	since := w.since.Swap(0)
	if since == 0 {
		return 0
	}
	return max(0, time.Duration(now.UnixNano()-since))
}

// wake is called by the source.
func (st *stream) wake(w Wake) {
	if w == WakeDependent {
		st.want(dependent)
	} else {
		st.want(pushes)
	}
}

// want asks for a turn. Endpoints go before pushes that have not had theirs: there are few bytes of
// them, and one that died is to be gone at once, though many large responses wait to be written.
func (st *stream) want(what uint32) {
	if st.work.bits.Or(what) == 0 {
		st.work.since.Store(time.Now().UnixNano())
	}
	switch what {
	case answers:
		st.member.Want(push.Urgent)
	case dependent:
		st.member.Want(push.Small)
	default:
		st.member.Want(push.Other)
	}
}

// passedLong reports whether endpoints have overtaken a push for as long as anything waits. It
// notes since when they do.
func (st *stream) passedLong() bool {
	if st.passed.IsZero() {
		st.passed = time.Now()
	}
	return time.Since(st.passed) > st.server.config.OrderPatience
}
