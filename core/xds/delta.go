package xds

import (
	"maps"
	"slices"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
)

// delta takes an incremental request. Unlike in SotW its subscriptions count whatever its nonce:
// they are differences, and would be lost.
func (m *machine) deltaRequest(r *discovery.DeltaDiscoveryRequest) effects {
	w, known := m.watch(r.TypeUrl)
	if w == nil {
		return effects{unknown: !known}
	}
	e := effects{vain: w.vain(r.ResourceNamesSubscribe)}
	w.explicit = w.explicit || slices.Contains(r.ResourceNamesSubscribe, "")
	r.ResourceNamesSubscribe, r.ResourceNamesUnsubscribe = named(r.ResourceNamesSubscribe), named(r.ResourceNamesUnsubscribe)
	if r.ResponseNonce != "" {
		e.report = m.hear(w, r.ResponseNonce, refusal(r.ErrorDetail))
		e.stale = e.report == nil && r.ResponseNonce != w.nonce && w.nonce != ""
	}
	before := w.subscription
	m.resubscribe(w, m.shift(w, r), &e)
	m.repeat(w, before, r)
	if w.subscription != nil && w.sent.subscription != w.subscription && (e.subscribe != nil || !w.owed) {
		w.owe()
	}
	return m.conclude(w, &e)
}

// shift returns what a request makes of the subscription.
func (m *machine) shift(w *watch, r *discovery.DeltaDiscoveryRequest) *subscription {
	if w.traits.Unnamed {
		if slices.Contains(r.ResourceNamesUnsubscribe, everything) {
			return nil
		}
		return m.common.subscriptions.get(true, nil)
	}
	first := !w.explicit && w.subscription == nil
	w.explicit = w.explicit || len(r.ResourceNamesSubscribe)+len(r.ResourceNamesUnsubscribe) > 0
	if to, ok := m.plain(w, r); ok {
		return to
	}
	wildcard := w.subscription != nil && w.subscription.wildcard
	names := map[string]bool{}
	if w.subscription != nil {
		for _, n := range w.subscription.names {
			names[n] = true
		}
	}
	for _, n := range r.ResourceNamesSubscribe {
		names[n] = true
	}
	if first && len(r.InitialResourceVersions) > 0 {
		w.initial = maps.Clone(r.InitialResourceVersions)
		if !w.traits.Wildcard {
			for n := range w.initial {
				names[n] = true
			}
		}
	}
	if first && len(names) == 0 && !slices.Contains(r.ResourceNamesUnsubscribe, everything) {
		wildcard = w.traits.Wildcard
	}
	wildcard = wildcard || w.traits.Wildcard && names[everything]
	for _, n := range r.ResourceNamesUnsubscribe {
		delete(names, n)
		wildcard = wildcard && n != everything
	}
	delete(names, everything)
	list := slices.Collect(maps.Keys(names))
	return m.common.subscriptions.next(w.subscription, wildcard, list)
}

// plain returns what becomes of the subscription where the request names names alone: more and
// fewer of them, and the first of a watch.
func (m *machine) plain(w *watch, r *discovery.DeltaDiscoveryRequest) (to *subscription, ok bool) {
	switch {
	case slices.Contains(r.ResourceNamesSubscribe, everything) || slices.Contains(r.ResourceNamesUnsubscribe, everything):
		return nil, false
	case w.subscription != nil:
		return m.common.subscriptions.shift(w.subscription, r.ResourceNamesSubscribe, r.ResourceNamesUnsubscribe), true
	case len(r.ResourceNamesSubscribe) == 0 || len(r.ResourceNamesUnsubscribe) > 0 || len(r.InitialResourceVersions) > 0:
		return nil, false
	}
	return m.common.subscriptions.get(false, r.ResourceNamesSubscribe), true
}

// repeat notes the names that are to be sent although the client was sent them: those it subscribes
// to again (it may have lost them), and those that it no longer names but that its wildcard still
// covers (so that it knows whether they exist).
func (m *machine) repeat(w *watch, before *subscription, r *discovery.DeltaDiscoveryRequest) {
	for _, n := range r.ResourceNamesSubscribe {
		if before.named(n) && w.subscription.named(n) || n != everything && before.wants(n) && w.sent.subscription.wants(n) {
			w.repeat(n)
		}
	}
	for _, n := range r.ResourceNamesUnsubscribe {
		if before.named(n) && w.subscription.wants(n) {
			w.repeat(n)
		}
	}
}

// refusal returns the message of a NACK, nil for an ACK.
func refusal(s *rpc.Status) *string {
	if s == nil {
		return nil
	}
	text := s.Message
	if text == "" {
		text = "refused without a message"
	}
	return &text
}
