package xds

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/core/view"
	"google.golang.org/protobuf/encoding/protowire"
)

// serving returns the revision that a type is taken to.
func (m *machine) serving(w *watch) *Served {
	if m.overtook(w) {
		return &m.newest
	}
	return &m.served
}

// target returns where the client can be taken now. all says that it is all that it wants;
// otherwise what is newly asked for isn't known yet, and only what it has moves on.
func (m *machine) target(w *watch) (to situation, all, ok bool) {
	s := m.serving(w).Types[w.url]
	if s == nil || w.subscription == nil {
		return to, false, false
	}
	to = situation{s, w.subscription}
	if !w.partial && m.common.memo.content(to).known {
		return to, true, true
	}
	to.subscription = w.sent.subscription
	if to.subscription == nil || to.subscription == w.subscription {
		return to, false, false
	}
	return to, false, m.common.memo.content(to).known
}

// batch is what a response is made from.
type batch struct {
	to      situation
	answer  bool // to a request
	first   bool // since the client subscribed
	clears  bool
	upserts []*view.Body
	absent  []string
	gone    []*view.Body  // what the response takes from the client
	shared  *sharedChange // set while upserts are exactly its own
}

// bring returns the response that gives the client what is new or changed, nil if there is nothing
// to say. What is gone is noted.
func (m *machine) bring(w *watch) *response {
	to, all, ok := m.target(w)
	if !ok {
		return nil
	}
	m.acquit(w, to)
	c := m.common.memo.change(w.sent, to)
	b := &batch{to: to, answer: w.owed && all, first: !w.answered(), upserts: c.upserts, absent: c.absent, shared: c}
	w.leave(c.gone)
	b.clears = len(w.doubtful) == 0 || m.moved(w, to) || w.held.spared
	w.held.spared = false
	if b.clears {
		for _, s := range w.doubtful {
			d := m.common.memo.change(s, to)
			b.add(w.without(d.upserts))
			w.leave(d.gone)
		}
		w.leave(w.kept)
		w.kept = nil
	}
	m.repeatIn(w, b)
	m.singly(w, b)
	if w.traits.EmptyWhenAbsent {
		m.fillAbsent(w, b)
	}
	w.stay(m.common.memo.content(to).content)
	if !b.answer && len(b.upserts)+len(b.absent) == 0 {
		w.sent = to
		return nil
	}
	if m.delta {
		return m.bringDelta(w, b)
	}
	return m.bringSotW(w, b)
}

// moved reports whether anything of what the client was sent is different now. What it newly asks
// for says nothing of what it refused.
func (m *machine) moved(w *watch, to situation) bool {
	if to.snapshot == w.sent.snapshot || w.sent.subscription == nil {
		return false
	}
	return !m.common.memo.change(w.sent, situation{to.snapshot, w.sent.subscription}).empty()
}

// leave notes resources that are to be taken from the client.
func (w *watch) leave(gone []*view.Body) {
	if w.traits.NeverRemoved {
		return
	}
	for _, g := range gone {
		if !slices.ContainsFunc(w.gone, func(b *view.Body) bool { return b.Name() == g.Name() }) {
			w.gone = append(w.gone, g)
		}
	}
}

// stay drops from what is to be taken what exists again and what the client dropped itself.
func (w *watch) stay(now *content) {
	w.gone = slices.DeleteFunc(w.gone, func(g *view.Body) bool {
		i, ok := slices.BinarySearchFunc(now.bodies, g, byName)
		return ok && now.bodies[i].Exists() || !w.subscription.wants(g.Name())
	})
}

// add puts resources in that are not there yet.
func (b *batch) add(bodies []*view.Body) {
	var more []*view.Body
	for _, x := range bodies {
		if _, ok := slices.BinarySearchFunc(b.upserts, x, byName); !ok {
			more = append(more, x)
		}
	}
	if len(more) == 0 {
		return
	}
	b.shared = nil
	b.upserts = append(slices.Clone(b.upserts), more...)
	slices.SortFunc(b.upserts, byName)
	b.upserts = slices.CompactFunc(b.upserts, func(x, y *view.Body) bool { return x.Name() == y.Name() })
}

// lack puts absent names in that are not there yet.
func (b *batch) lack(names []string) {
	if len(names) == 0 {
		return
	}
	have := make(map[string]bool, len(b.absent)+len(names))
	for _, n := range b.absent {
		have[n] = true
	}
	b.absent = slices.Clip(b.absent) // it may be shared
	for _, n := range names {
		if !have[n] {
			have[n] = true
			b.absent = append(b.absent, n)
		}
	}
}

// repeatIn puts the names in that are to be sent once more.
func (m *machine) repeatIn(w *watch, b *batch) {
	var more []*view.Body
	var absent []string
	for _, n := range w.resend {
		if !b.to.subscription.wants(n) {
			continue
		}
		if body := b.to.snapshot.Get(n); body != nil && body.Exists() {
			more = append(more, body)
		} else {
			absent = append(absent, n)
		}
	}
	b.add(more)
	b.lack(absent)
	w.resend, w.sifted = nil, 0
}

// fillAbsent turns absent names that are asked for into empty resources.
func (m *machine) fillAbsent(w *watch, b *batch) {
	var left []string
	var more []*view.Body
	for _, n := range b.absent {
		if n != "" && w.subscription.named(n) {
			more = append(more, m.stopgap(w, n))
		} else {
			left = append(left, n)
		}
	}
	b.add(more)
	b.absent = left
}

// stopgap returns what stands for an absent name: an empty resource, unless the push that goes on
// still has it. Then it leaves with the next.
func (m *machine) stopgap(w *watch, name string) *view.Body {
	if m.overtook(w) {
		if old := m.served.Types[w.url].Get(name); old != nil && old.Exists() {
			w.leave([]*view.Body{old})
			return old
		}
	}
	return emptyBody(w.url, name)
}

// emptyBody is a resource without content but its name, which Envoy's types have in field 1.
func emptyBody(typeURL, name string) *view.Body {
	return view.NewBody(typeURL, name, appendText(nil, protowire.Number(1), name), 0)
}

func (m *machine) bringSotW(w *watch, b *batch) *response {
	r := &response{resources: b.upserts}
	if b.shared != nil {
		r.fragments = b.shared.sotw.of(b.shared.upserts, false)
	}
	c := m.common.memo.content(b.to)
	r.version = c.version
	if w.traits.FullState {
		if !b.answer && len(b.upserts) == 0 {
			w.sent = b.to // absent names alone: nothing to say
			return nil
		}
		m.whole(w, c, r)
		switch {
		case !m.leads(w):
			w.gone = nil
		case len(w.gone) > 0: // the union, until everything else has been sent
			r.resources, r.fragments = slices.Concat(r.resources, m.stands(w)), nil
			slices.SortFunc(r.resources, byName)
			r.version = versionOf(r.resources)
		}
	} else if !b.answer && len(b.upserts) == 0 {
		w.sent = b.to
		return nil
	}
	return m.depart(w, b, r)
}

// whole makes a response of all that there is but for what the client refused by name.
func (m *machine) whole(w *watch, c *sharedContent, r *response) {
	all := existing(c.bodies)
	if r.resources = w.substitute(all); len(w.held.culprits) > 0 {
		r.version, r.fragments = versionOf(r.resources), nil
		return
	}
	r.fragments = c.sotw.of(r.resources, false)
}

// stands returns what the client is left of what is to be taken from it. After a refusal that is
// what it accepted before: what it was refused for would be refused again, and all that comes with
// it.
func (m *machine) stands(w *watch) []*view.Body {
	if w.refused == "" {
		return w.gone
	}
	accepted := m.common.memo.content(w.acked.to).bodies
	var left []*view.Body
	for _, g := range w.gone {
		if i, ok := slices.BinarySearchFunc(accepted, g, byName); ok && accepted[i].Exists() {
			left = append(left, accepted[i])
		}
	}
	return w.substitute(left)
}

func (m *machine) bringDelta(w *watch, b *batch) *response {
	r := &response{delta: true, version: m.common.memo.content(b.to).version}
	if b.first && w.initial != nil {
		m.reconcile(w, b, r)
	}
	r.resources = b.upserts
	if b.shared != nil {
		r.fragments = b.shared.delta.of(b.shared.upserts, true)
	}
	if !w.traits.NeverRemoved {
		r.removed = append(r.removed, b.absent...)
	}
	if w.traits.FullState && !m.leads(w) && len(r.resources) > 0 {
		for _, g := range w.gone {
			r.removed = append(r.removed, g.Name())
		}
		b.gone, w.gone = w.gone, nil
	}
	if len(r.resources)+len(r.removed) == 0 && !b.first {
		w.sent, w.owed = b.to, w.owed && !b.answer
		return nil
	}
	return m.depart(w, b, r)
}

// reconcile leaves out what a reconnecting client has already, and removes what it has and nobody
// else.
func (m *machine) reconcile(w *watch, b *batch, r *response) {
	b.upserts = slices.DeleteFunc(slices.Clone(b.upserts), func(u *view.Body) bool { return w.initial[u.Name()] == u.Version() })
	b.shared = nil
	now := m.common.memo.content(b.to).bodies
	for n := range w.initial {
		_, has := slices.BinarySearchFunc(now, view.Absent(n), byName)
		if !has && b.to.subscription.wants(n) && !w.traits.NeverRemoved {
			r.removed = append(r.removed, n)
		}
	}
	slices.Sort(r.removed)
}

// depart completes a response and records it.
func (m *machine) depart(w *watch, b *batch, r *response) *response {
	r.typeURL, r.identifier, r.number, r.nonce = w.url, m.common.identifier, m.serving(w).Number, m.nextNonce()
	if b.answer {
		w.owed = false
	}
	if b.first {
		w.initial = nil
	}
	r.bytes = r.size()
	w.depart(flight{
		nonce: r.nonce, version: r.version, number: r.number, to: b.to, gone: b.gone, clears: b.clears,
		since: m.now, resources: len(r.resources), bytes: r.bytes,
	})
	m.follow(w, b)
	return r
}

// follow makes the types that come after this one be answered again.
func (m *machine) follow(w *watch, b *batch) {
	for _, d := range m.watches {
		switch {
		case d.traits.After != w.url || !d.answered():
		case b.first && !m.delta:
			d.again = true
		default:
			for _, n := range dependents(w.url, b.upserts) {
				if d.sent.subscription.wants(n) {
					d.repeat(n)
				}
			}
		}
	}
}

// remove returns the response that takes from the client what is gone, nil if nothing is or can be.
func (m *machine) remove(w *watch) *response {
	gone := w.gone
	w.gone = nil
	if len(gone) == 0 {
		return nil
	}
	c := m.common.memo.content(w.sent)
	r := &response{delta: m.delta, version: c.version}
	for _, g := range gone {
		switch {
		case w.traits.EmptyWhenAbsent && g.Name() != "" && w.subscription.named(g.Name()):
			r.resources = append(r.resources, emptyBody(w.url, g.Name()))
		case m.delta:
			r.removed = append(r.removed, g.Name())
		}
	}
	if !m.delta && w.traits.FullState {
		m.whole(w, c, r)
	} else if len(r.resources)+len(r.removed) == 0 {
		return nil
	}
	return m.depart(w, &batch{to: w.sent, gone: gone, clears: len(w.doubtful) == 0}, r)
}
