package xds

import (
	"cmp"
	"errors"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
)

// check judges a request by itself, before anything is made of it.
func (r request) check(l *budget.Stream, known *lists) error {
	names, more, nonce := r.sotw.GetResourceNames(), []string(nil), r.sotw.GetResponseNonce()
	if r.delta != nil {
		names, more, nonce = r.delta.ResourceNamesSubscribe, r.delta.ResourceNamesUnsubscribe, r.delta.ResponseNonce
		if err := l.CheckVersions(r.delta.InitialResourceVersions); err != nil {
			return err
		}
	}
	return cmp.Or(l.CheckType(r.typeURL()), l.CheckNonce(nonce), known.judge(names, l.CheckNames), l.CheckNames(more))
}

// cut shortens what a request says of an error, and reports whether it was too long.
func (r request) cut(most int) bool {
	d := r.errorDetail()
	if d == nil {
		return false
	}
	long := len(d.Message) > most
	d.Message, d.Details = budget.Line(d.Message, most), nil
	return long
}

// introduce puts the stream down to who is behind it, with its node.
func (st *stream) introduce() error {
	if len(st.identities) > 0 {
		if err := st.lease.Become(st.identities[0], time.Now()); err != nil {
			return err
		}
	}
	return st.lease.Hold("", st.own(st.weight), time.Now())
}

// own is what the stream keeps that no other stream can share.
func (st *stream) own(bytes int) budget.Held {
	type mine struct {
		of    *stream
		bytes int
	}
	return budget.Held{Of: mine{st, bytes}, Bytes: bytes}
}

// holding returns what the stream makes the core keep.
func (st *stream) holding() budget.Holding {
	h := budget.Holding{Bytes: st.weight}
	for _, w := range st.machine.watches {
		names, bytes := w.holds()
		h.Types++
		h.MostNames = max(h.MostNames, w.subscription.count())
		h.Names += names
		h.Bytes += budget.WeighNames(names, bytes)
	}
	for _, q := range st.questions {
		h.Bytes += budget.WeighNames(len(q.names), bytesOf(q.names))
	}
	return h
}

// holds returns how many names a watch keeps, and their bytes.
func (w *watch) holds() (names, bytes int) {
	if s := w.subscription; s != nil {
		names, bytes = len(s.names), s.bytes
	}
	for n, version := range w.initial {
		bytes += 2*budget.WeighNames(1, 0) + len(n) + len(version)
	}
	if len(w.resend) > 0 {
		w.sift()
	}
	return names + len(w.resend), bytes + bytesOf(w.resend)
}

// count returns how many names are asked for.
func (s *subscription) count() int {
	if s == nil {
		return 0
	}
	return len(s.names)
}

// limited counts that a limit refused something.
func (m *metrics) limited(err error) {
	var r *budget.Refusal
	if errors.As(err, &r) {
		m.limits.WithLabelValues(r.Limit).Inc()
	}
}
