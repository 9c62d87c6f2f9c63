package xds

import (
	"slices"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// everything is the name that stands for all resources of a type.
const everything = "*"

// sotw takes a state-of-the-world request. Only the nonce tells what it answers; its version is not
// looked at.
func (m *machine) sotw(r *discovery.DiscoveryRequest) effects {
	w, known := m.watch(r.TypeUrl)
	if w == nil {
		return effects{unknown: !known}
	}
	var e effects
	switch {
	case r.ResponseNonce == "" && w.nonce != "": // the client begins anew
		w.forget()
	case w.nonce == "": // first request, or a reconnect: a nonce of another stream
	case r.ResponseNonce != w.nonce:
		e.stale = true
		m.pass(w, r.ResourceNames)
		e.report = m.hear(w, r.ResponseNonce, refusal(r.ErrorDetail)) // still says what became of that response
		return m.conclude(w, &e)
	default:
		e.report = m.hear(w, r.ResponseNonce, refusal(r.ErrorDetail))
		if w.again && r.ErrorDetail == nil {
			w.again = false
			w.owe()
			w.sent = situation{}
		}
	}
	m.want(w, r.ResourceNames, &e)
	w.missed = false
	for _, n := range w.lost {
		if w.subscription.named(n) {
			w.repeat(n)
		}
	}
	w.lost = nil
	return m.conclude(w, &e)
}

// pass notes of a request with a stale nonce what may be lost on it: names that it lacks have been
// dropped by the client, even if the next request that counts has them again.
func (m *machine) pass(w *watch, names []string) {
	w.missed = true
	if w.subscription == nil {
		return
	}
	to := m.common.subscriptions.next(w.subscription, w.subscription.wildcard, names)
	m.dropped(w, to)
	switch {
	case to == nil:
		w.lose(w.subscription.names)
	case to != w.subscription:
		w.lose(w.subscription.lacks(to.names))
	}
}

// named leaves out what is no name: no resource has an empty one.
func named(names []string) []string {
	if !slices.Contains(names, "") {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == "" })
}

// want sets what a request names. Whatever it adds is owed an answer; what it leaves out is dropped
// without one.
func (m *machine) want(w *watch, names []string, e *effects) {
	any := len(names) > 0
	names = named(names)
	all := slices.Contains(names, everything)
	if all || w.traits.Unnamed {
		names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == everything || w.traits.Unnamed })
	}
	wildcard := w.traits.Unnamed
	if w.traits.Wildcard {
		wildcard = wildcard || all || !any && !w.explicit
		w.explicit = w.explicit || any
	}
	m.resubscribe(w, m.common.subscriptions.next(w.subscription, wildcard, names), e)
	if w.subscription != nil && w.sent.subscription != w.subscription && (e.subscribe != nil || !w.owed) {
		w.owe()
	}
}
