package xds

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// machine is one stream's protocol state, for both protocols: requests, snapshots and a clock in;
// subscriptions, reports and responses out. It has no goroutine, no clock of its own and knows no
// gRPC.
type machine struct {
	common *common
	delta  bool
	// offers says how a type behaves, or that nobody serves it (Connection.Offers).
	offers func(typeURL string) (*pb.Traits, bool)
	// authenticated streams may have sensitive types.
	authenticated bool
	// envoy is set for clients whose node says so (user_agent_name).
	envoy bool
	// prefix makes the nonces of this stream differ from those of others.
	prefix string

	watches []*watch // in order of rank
	served  Served   // what the push that goes on is for
	newest  Served
	nonces  uint64
	now     time.Time // of the last turn
	// held is since when something waits for the client's answers; zero if nothing does.
	held time.Time
	// said is the last revision that was said to be answered (Outcome.Answered).
	said uint64
}

// common is what the streams of a server share.
type common struct {
	subscriptions *subscriptions
	memo          *memo
	// patience is how long a push waits for the client to accept what comes earlier in the order.
	patience   time.Duration
	identifier string
}

func newCommon(patience time.Duration, identifier string) *common {
	return &common{subscriptions: newSubscriptions(), memo: newMemo(), patience: patience, identifier: identifier}
}

// effects are what a request leads to.
type effects struct {
	// subscribe is what the stream wants of the type from now on, if that changed.
	subscribe *wish
	report    *Outcome
	// turn asks for a push: there is, or may be, something to send. The client waits for it if
	// answer is set; otherwise its answer may let the push go on.
	turn, answer bool
	// unknown is set for a type that nobody offers, stale for a request that answers a response
	// which is not the last.
	unknown, stale bool
	// vain is set for a wildcard where it means nothing. It is answered, with nothing, so that the
	// client doesn't wait for ever.
	vain bool
}

// wish are the arguments of Connection.Subscribe.
type wish struct {
	typeURL  string
	wildcard bool
	names    []string
}

// watch returns the stream's watch of a type, nil where requests for it are to be passed over.
func (m *machine) watch(typeURL string) (w *watch, known bool) {
	if w := m.find(typeURL); w != nil {
		return w, true
	}
	traits, ok := m.offers(typeURL)
	if !ok {
		return nil, false
	}
	if traits.Sensitive && !m.authenticated {
		return nil, true
	}
	w = &watch{url: typeURL, traits: traits}
	at, _ := slices.BinarySearchFunc(m.watches, w, func(a, b *watch) int {
		return cmp.Or(cmp.Compare(a.traits.Rank, b.traits.Rank), cmp.Compare(a.url, b.url))
	})
	m.watches = slices.Insert(m.watches, at, w)
	return w, true
}

func (m *machine) find(typeURL string) *watch {
	for _, w := range m.watches {
		if w.url == typeURL {
			return w
		}
	}
	return nil
}

// resubscribe changes what a watch wants and says so.
func (m *machine) resubscribe(w *watch, to *subscription, e *effects) {
	if to == w.subscription {
		return
	}
	w.subscription = to
	w.sent.subscription = m.common.subscriptions.and(w.sent.subscription, to)
	m.dropped(w, to)
	e.subscribe = &wish{typeURL: w.url}
	if to == nil {
		w.forget()
		return
	}
	e.subscribe.wildcard, e.subscribe.names = to.wildcard, to.names
}

// dropped notes that the client has dropped what a subscription doesn't cover: if it asks for that
// again and refuses it, it has none of it.
func (m *machine) dropped(w *watch, to *subscription) {
	less := func(s *situation) { s.subscription = m.common.subscriptions.and(s.subscription, to) }
	less(&w.acked.to)
	for i := range w.flights {
		less(&w.flights[i].to)
	}
	for i := range w.doubtful {
		less(&w.doubtful[i])
	}
}

// conclude sets whether there is something to send.
func (m *machine) conclude(w *watch, e *effects) effects {
	e.answer = w.owed || len(w.resend) > 0
	e.turn = e.answer || w.held.spared || !m.held.IsZero()
	return *e
}

func (m *machine) nextNonce() string {
	m.nonces++
	return fmt.Sprintf("%s%d", m.prefix, m.nonces)
}
