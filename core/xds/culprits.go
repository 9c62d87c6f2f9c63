package xds

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/coxswain-mesh/coxswain/core/view"
)

// culprit is a resource that a client refused, or may have. It is left out of what the client is
// sent, so that the rest is taken, until it is another one.
type culprit struct {
	body *view.Body
	// instead is what the client accepted of that name before; nil: nothing.
	instead *view.Body
	since   time.Time
	reason  string
	// pardoned: it may be sent once more.
	pardoned bool
	// group is that in which it waits to be tried; 0: it was refused alone, or by name.
	group int
}

// held are the resources that are left out.
type held struct {
	culprits []culprit
	// spared: there is one more, or one less to be tried, and the rest of what was refused with it
	// can be sent again.
	spared bool
	// groups wait to be tried, the last one first; last is the last one's number, trials how many
	// there were since the client accepted everything.
	groups []int
	last   int
	trials int
}

const (
	// pardon is how long a culprit is left out at most: then the next change of its type brings it
	// again, for what was wrong may have been the client's. Filters' configurations (ECDS) are left
	// out until they are others: a client takes the same bytes again without looking at them.
	pardon = time.Minute
	// mostTrials is how often parts of what a client refused are tried before all of the rest is
	// left out.
	mostTrials = 100
)

// hear takes what a client says to a response, as watch.record does, and finds out what its refusal
// is about: the resources that it names or, where it names none, by sending one half of them, and
// the other half once the client has answered.
func (m *machine) hear(w *watch, nonce string, refused *string) *Outcome {
	if refused != nil {
		said := unsaid(m, w, nonce, *refused)
		found, rest := m.accuse(w, nonce, *refused, said)
		o := w.record(nonce, &said)
		if o != nil {
			o.Culprits = found
		}
		if !rest && (len(found) > 0 || len(w.held.groups) > 0) {
			w.tryNext() // nothing is left to be sent, and answered
		}
		return o
	}
	o := w.record(nonce, nil)
	if o != nil {
		w.acked.since = m.now
		w.tryNext()
	}
	return o
}

// accuse notes which resources a refusal is about, among those that were new to the client. The
// others can be sent again at once. It returns those that are known to be refused, and whether
// there is a rest. said is the reason as it may be shown.
func (m *machine) accuse(w *watch, nonce, reason, said string) (found []Culprit, rest bool) {
	i := slices.IndexFunc(w.flights, func(f flight) bool { return f.nonce == nonce })
	if i < 0 {
		return nil, false
	}
	flown := w.flights[i].to
	change := m.common.memo.change(w.acked.to, flown)
	fresh := slices.Clone(change.upserts)
	for _, c := range w.held.culprits {
		if b, ok := find(m.common.memo.content(flown).bodies, c.body); ok && c.pardoned && b.Version() == c.body.Version() && !slices.Contains(fresh, b) {
			fresh = append(fresh, b)
		}
	}
	fresh = slices.DeleteFunc(fresh, w.leftOut)
	accepted := m.common.memo.content(w.acked.to).bodies
	accused := slices.DeleteFunc(slices.Clone(fresh), func(b *view.Body) bool { return !mentions(reason, b.Name()) })
	group := 0
	if len(accused) == 0 {
		w.held.trials++
		switch {
		case len(fresh) < 2 || w.held.trials > mostTrials:
			accused = fresh
		default: // one half waits while the other is tried
			w.held.last++
			group, accused = w.held.last, fresh[len(fresh)/2:]
			w.held.groups = append(w.held.groups, group)
		}
	}
	for _, c := range w.held.culprits {
		if c.pardoned && !slices.ContainsFunc(accused, func(b *view.Body) bool { return b.Name() == c.body.Name() }) {
			w.repeat(c.body.Name()) // it counts as sent
		}
	}
	for _, b := range accused {
		c := culprit{body: b, since: m.now, reason: said, group: group}
		if old, ok := find(accepted, b); ok && old.Exists() {
			c.instead = old
		}
		for _, before := range w.held.culprits {
			if before.body.Name() == b.Name() { // that is what was sent in its place
				c.instead = before.instead
			}
		}
		w.held.culprits = append(slices.DeleteFunc(slices.Clone(w.held.culprits), func(c culprit) bool { return c.body.Name() == b.Name() }), c)
		if group == 0 {
			found = append(found, Culprit{c.body, c.instead})
		}
	}
	rest = len(fresh) > len(accused)
	// A refusal is not answered where there is nothing else, and nothing else is under way.
	w.held.spared = w.held.spared || len(accused) > 0 && (rest || len(change.gone) > 0 || len(w.flights) > 1)
	return found, rest
}

// tryNext has the next group tried, once the client has answered all that it was sent.
func (w *watch) tryNext() {
	if len(w.held.groups) == 0 {
		if len(w.doubtful) == 0 {
			w.held.trials = 0
		}
		return
	}
	for found := false; !found && len(w.flights) == 0 && len(w.held.groups) > 0; {
		last := len(w.held.groups) - 1
		group := w.held.groups[last]
		w.held.groups = w.held.groups[:last]
		w.held.culprits = slices.Clone(w.held.culprits)
		for i, c := range w.held.culprits {
			if c.group == group { // otherwise they are others by now, or gone
				w.held.culprits[i].group, w.held.culprits[i].pardoned = 0, true
				w.repeat(c.body.Name()) // it counts as sent
				found, w.held.spared = true, true
			}
		}
	}
}

// singly leaves one resource in a batch where a client judges each of them once and then takes the
// same bytes unseen, as Envoy does filters' configurations (ECDS): what is refused can't be found
// by sending parts of it again. The others wait in groups of their own until that is answered.
// Other clients are answered with all that they ask for at once.
func (m *machine) singly(w *watch, b *batch) {
	if !m.envoy || w.url != typeExtensions {
		return
	}
	most := 1
	if slices.ContainsFunc(w.flights, func(f flight) bool { return f.resources > 0 }) {
		most = 0 // a refusal is about all that was not accepted
	}
	if len(b.upserts) <= most || b.first && w.initial != nil {
		return
	}
	accepted := m.common.memo.content(w.acked.to).bodies
	culprits := slices.Clone(w.held.culprits)
	for _, x := range b.upserts[most:] {
		w.held.last++
		w.held.groups = append(w.held.groups, w.held.last)
		c := culprit{body: x, since: m.now, group: w.held.last}
		if old, ok := find(accepted, x); ok && old.Exists() {
			c.instead = old
		}
		culprits = append(slices.DeleteFunc(culprits, func(c culprit) bool { return c.body.Name() == x.Name() }), c)
	}
	w.held.culprits = culprits
	b.upserts, b.shared = b.upserts[:most:most], nil
}

// find returns the body of another's name among sorted ones.
func find(bodies []*view.Body, of *view.Body) (*view.Body, bool) {
	i, ok := slices.BinarySearchFunc(bodies, of, byName)
	if !ok {
		return nil, false
	}
	return bodies[i], true
}

// mentions reports whether a text has a name as a word of its own.
func mentions(text, name string) bool {
	if name == "" {
		return false
	}
	for {
		before, after, found := strings.Cut(text, name)
		if !found {
			return false
		}
		last, _ := utf8.DecodeLastRuneInString(before)
		next, size := utf8.DecodeRuneInString(after)
		if next == '.' { // the end of a sentence, or more of a name
			next, _ = utf8.DecodeRuneInString(after[size:])
		}
		if (before == "" || !partOfName(last) && last != '.') && (after == "" || !partOfName(next)) {
			return true
		}
		text = text[len(before)+1:]
	}
}

func partOfName(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-|/", r))
}

// leftOut reports whether a resource is one that the client refused by name.
func (w *watch) leftOut(b *view.Body) bool {
	return slices.ContainsFunc(w.held.culprits, func(c culprit) bool { return c.is(b) })
}

func (c culprit) is(b *view.Body) bool {
	return !c.pardoned && c.body.Name() == b.Name() && c.body.Version() == b.Version()
}

// acquit forgets culprits that are others now, or gone from the client; after a while all are
// pardoned, if something else brings them along.
func (m *machine) acquit(w *watch, to situation) {
	if len(w.held.culprits) == 0 {
		return
	}
	now, sent, moved := m.common.memo.content(to).bodies, m.common.memo.content(w.sent).bodies, m.moved(w, to)
	var left []culprit
	for _, c := range w.held.culprits {
		b, ok := find(now, c.body)
		if !ok || !b.Exists() {
			_, had := find(sent, c.body)
			ok = had || slices.ContainsFunc(w.gone, func(g *view.Body) bool { return g.Name() == c.body.Name() })
		} else {
			ok = b.Version() == c.body.Version()
		}
		if !ok {
			continue
		}
		if moved && !c.pardoned && c.group == 0 && w.url != typeExtensions && m.now.Sub(c.since) >= pardon {
			c.pardoned = true
			w.resend = append(w.resend, c.body.Name())
		}
		left = append(left, c)
	}
	w.held.culprits = left
}

// accepted notes that what was pardoned was not refused again.
func (w *watch) accepted() {
	w.held.culprits = slices.DeleteFunc(slices.Clone(w.held.culprits), func(c culprit) bool { return c.pardoned })
}

// substitute puts in the place of culprits what the client accepted of their names before, if
// anything.
func (w *watch) substitute(bodies []*view.Body) []*view.Body {
	if !slices.ContainsFunc(bodies, w.leftOut) {
		return bodies
	}
	var left []*view.Body
	for _, b := range bodies {
		i := slices.IndexFunc(w.held.culprits, func(c culprit) bool { return c.is(b) })
		switch {
		case i < 0:
			left = append(left, b)
		case w.held.culprits[i].instead != nil:
			left = append(left, w.held.culprits[i].instead)
		}
	}
	return left
}

// without are bodies but for culprits.
func (w *watch) without(bodies []*view.Body) []*view.Body {
	if !slices.ContainsFunc(bodies, w.leftOut) {
		return bodies
	}
	return slices.DeleteFunc(slices.Clone(bodies), w.leftOut)
}
