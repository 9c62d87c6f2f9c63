package xds

import (
	"maps"
	"slices"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// listener is a client that may ask for anything in any way, and takes whatever comes. What it
// wants is what the machine told the source of it; the rest follows: it is sent nothing else,
// nothing twice under one nonce, no secrets (nobody knows who it is), and at last it has all of it.
type listener struct {
	*conversation
	has  map[string]map[string]string
	used map[string]bool
}

func newListener(t *testing.T, delta bool) *listener {
	l := &listener{conversation: newConversation(t, time.Second), has: map[string]map[string]string{}, used: map[string]bool{}}
	l.machine.delta = delta
	l.source.change(func(resources map[string]map[string]string) {
		for _, typeURL := range slices.Sorted(maps.Keys(l.source.traits)) {
			resources[typeURL] = map[string]string{"a": "1", "b": "1"}
		}
	})
	return l
}

// sotw sends a request; its type may be a short name.
func (l *listener) sotw(r *discovery.DiscoveryRequest) {
	r.TypeUrl = longName(r.TypeUrl)
	if r.ResponseNonce == "" {
		delete(l.has, r.TypeUrl) // it begins anew
	}
	l.after(r.TypeUrl, l.machine.sotw(r))
}

func (l *listener) delta(r *discovery.DeltaDiscoveryRequest) {
	r.TypeUrl = longName(r.TypeUrl)
	l.after(r.TypeUrl, l.machine.deltaRequest(r))
}

func longName(name string) string {
	if url := shortNames[name]; url != "" {
		return url
	}
	return name
}

// after lets a request have its effects: what is no longer asked for is dropped.
func (l *listener) after(typeURL string, e effects) {
	if e.unknown && (e.turn || e.subscribe != nil || l.source.traits[typeURL] != nil) {
		l.t.Fatalf("%q is unknown, and yet: %s", typeURL, e.text())
	}
	if e.answer && !e.turn {
		l.t.Fatalf("an answer without a turn: %s", e.text())
	}
	if e.subscribe != nil {
		maps.DeleteFunc(l.has[typeURL], func(n, _ string) bool { return !e.subscribe.covers(n) })
	}
	l.apply(e)
	l.hear()
}

func (w *wish) covers(name string) bool { return w.wildcard || slices.Contains(w.names, name) }

// wish is what the client wants of a type.
func (l *listener) wish(typeURL string) wish { return l.connection.wants[typeURL] }

// hear takes what was sent.
func (l *listener) hear() {
	for _, r := range l.pending {
		want := l.wish(r.typeURL)
		switch got := decode(r); {
		case r.nonce == "" || l.used[r.nonce]:
			l.t.Fatalf("nonce %q of %s is not its own", r.nonce, describe(r))
		case l.source.traits[r.typeURL].Sensitive:
			l.t.Fatalf("secrets for a stranger: %s", describe(r))
		case len(got) != len(r.resources):
			l.t.Fatalf("a name is sent twice: %v", r.resources)
		default:
			l.used[r.nonce] = true
			l.take(r, got)
		}
		for _, b := range r.resources {
			if !want.covers(b.Name()) {
				l.t.Fatalf("%s is not asked for: %+v, but %s", b.Name(), want, describe(r))
			}
			if slices.Contains(r.removed, b.Name()) {
				l.t.Fatalf("%s is there and removed: %s", b.Name(), describe(r))
			}
		}
	}
	l.pending = nil
}

func (l *listener) take(r *response, got map[string]string) {
	if l.has[r.typeURL] == nil || !l.machine.delta && l.source.traits[r.typeURL].FullState {
		l.has[r.typeURL] = map[string]string{}
	}
	maps.Copy(l.has[r.typeURL], got)
	for _, n := range r.removed {
		delete(l.has[r.typeURL], n)
	}
}

// settle acknowledges all until nothing more comes.
func (l *listener) settle() {
	l.hear()
	for range 100 {
		for _, w := range slices.Clone(l.machine.watches) {
			l.acknowledge(w)
		}
		if l.alarm.IsZero() {
			return
		}
		l.now = l.alarm
		l.serve()
		l.hear()
	}
	l.t.Fatal("it never comes to rest")
}

// acknowledge answers the last response of a type until there is none to answer.
func (l *listener) acknowledge(w *watch) {
	for range 100 {
		nonce := w.nonce
		if nonce == "" || w.subscription == nil {
			return
		}
		if l.machine.delta {
			l.delta(&discovery.DeltaDiscoveryRequest{TypeUrl: w.url, ResponseNonce: nonce})
		} else {
			names := slices.Clone(w.subscription.names)
			if w.subscription.wildcard && w.explicit {
				names = append(names, everything)
			}
			l.sotw(&discovery.DiscoveryRequest{TypeUrl: w.url, ResponseNonce: nonce, ResourceNames: names})
		}
		if w.nonce == nonce {
			return
		}
	}
	l.t.Fatalf("%s: each answer leads to another response", w.url)
}

// check compares what the client has with what it asks for.
func (l *listener) check() {
	for typeURL, traits := range l.source.traits {
		want, has := map[string]string{}, l.has[typeURL]
		wish := l.wish(typeURL)
		for n, content := range l.source.resources[typeURL] {
			if wish.covers(n) && !traits.Sensitive {
				want[n] = content
			}
		}
		maps.DeleteFunc(has, func(_, content string) bool { return content == "" }) // stand-ins for what is absent
		if !maps.Equal(want, has) {
			l.t.Fatalf("%s: the client asks for %+v and has %v, not %v", typeURL, wish, has, want)
		}
	}
}
