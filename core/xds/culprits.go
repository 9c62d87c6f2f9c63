package xds

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/coxswain-mesh/coxswain/core/view"
)

// culprit is a resource that a client refused by name. It is left out of what the client is sent,
// so that the rest is taken, until it is another one.
type culprit struct {
	body *view.Body
	// instead is what the client accepted of that name before; nil: nothing.
	instead *view.Body
	since   time.Time
	// pardoned: it may be sent once more.
	pardoned bool
}

// pardon is how long a culprit is left out at most: then the next change of its type brings it
// again, for what was wrong may have been the client's.
const pardon = time.Minute

// hear takes what a client says to a response, as watch.take does, and finds out what its refusal
// is about.
func (m *machine) hear(w *watch, nonce string, refused *string) *Outcome {
	if refused != nil {
		m.accuse(w, nonce, *refused)
	}
	return w.take(nonce, refused)
}

// accuse notes which resources a refusal names, among those that were new to the client. The others
// can be sent again at once.
func (m *machine) accuse(w *watch, nonce, reason string) {
	i := slices.IndexFunc(w.flights, func(f flight) bool { return f.nonce == nonce })
	if i < 0 {
		return
	}
	flown := w.flights[i].to
	fresh := slices.Clone(m.common.memo.change(w.acked.to, flown).upserts)
	for _, c := range w.culprits {
		if b, ok := find(m.common.memo.content(flown).bodies, c.body); ok && c.pardoned && b.Version() == c.body.Version() {
			fresh = append(fresh, b)
		}
	}
	accepted := m.common.memo.content(w.acked.to).bodies
	for _, b := range fresh {
		if !mentions(reason, b.Name()) || w.leftOut(b) {
			continue
		}
		c := culprit{body: b, since: m.now}
		if old, ok := find(accepted, b); ok && old.Exists() {
			c.instead = old
		}
		for _, before := range w.culprits {
			if before.body.Name() == b.Name() { // that is what was sent in its place
				c.instead = before.instead
			}
		}
		w.culprits = append(slices.DeleteFunc(slices.Clone(w.culprits), func(c culprit) bool { return c.body.Name() == b.Name() }), c)
		w.spared = true
	}
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
	return slices.ContainsFunc(w.culprits, func(c culprit) bool { return c.is(b) })
}

func (c culprit) is(b *view.Body) bool {
	return !c.pardoned && c.body.Name() == b.Name() && c.body.Version() == b.Version()
}

// acquit forgets culprits that are others now, or gone from the client; after a while all are
// pardoned, if something else brings them along.
func (m *machine) acquit(w *watch, to situation) {
	if len(w.culprits) == 0 {
		return
	}
	now, sent, moved := m.common.memo.content(to).bodies, m.common.memo.content(w.sent).bodies, m.moved(w, to)
	var left []culprit
	for _, c := range w.culprits {
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
		if moved && !c.pardoned && m.now.Sub(c.since) >= pardon {
			c.pardoned = true
			w.resend = append(w.resend, c.body.Name())
		}
		left = append(left, c)
	}
	w.culprits = left
}

// accepted notes that what was pardoned was not refused again.
func (w *watch) accepted() {
	w.culprits = slices.DeleteFunc(slices.Clone(w.culprits), func(c culprit) bool { return c.pardoned })
}

// substitute puts in the place of culprits what the client accepted of their names before, if
// anything.
func (w *watch) substitute(bodies []*view.Body) []*view.Body {
	if !slices.ContainsFunc(bodies, w.leftOut) {
		return bodies
	}
	var left []*view.Body
	for _, b := range bodies {
		i := slices.IndexFunc(w.culprits, func(c culprit) bool { return c.is(b) })
		switch {
		case i < 0:
			left = append(left, b)
		case w.culprits[i].instead != nil:
			left = append(left, w.culprits[i].instead)
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
