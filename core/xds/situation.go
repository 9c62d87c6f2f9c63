package xds

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/view"
)

// situation is what a client has, or shall have, of a type: a snapshot as far as a subscription
// covers it. The zero situation is nothing.
type situation struct {
	snapshot     *view.Snapshot
	subscription *subscription
}

// content is a situation spelled out.
type content struct {
	// bodies by name; a body that doesn't exist marks a name that is asked for and known to be
	// absent.
	bodies []*view.Body
	// known is false while something that is asked for isn't known yet.
	known bool
	// absent of the names that are asked for don't exist, of unanswered ones that isn't known yet.
	absent, unanswered int
	// version is a hash over names and versions of what exists.
	version string
}

// resolve spells a situation out.
func resolve(s situation) *content {
	if s.snapshot == nil || s.subscription == nil {
		return &content{}
	}
	c := &content{known: true}
	if s.subscription.wildcard {
		c.bodies = s.snapshot.Bodies()
		c.known = s.snapshot.Complete()
	}
	for name, b := range s.snapshot.Each(s.subscription.names) {
		switch {
		case b == nil && !s.snapshot.Complete():
			c.known = false
			c.unanswered++
		case b == nil:
			c.bodies = append(c.bodies, view.Absent(name))
			c.absent++
		case !s.subscription.wildcard || !b.Exists():
			c.bodies = append(c.bodies, b)
			if !b.Exists() {
				c.absent++
			}
		}
	}
	if s.subscription.wildcard && len(s.subscription.names) > 0 {
		slices.SortFunc(c.bodies, byName)
	}
	c.version = versionOf(c.bodies)
	return c
}

func byName(a, b *view.Body) int {
	switch {
	case a.Name() < b.Name():
		return -1
	case a.Name() > b.Name():
		return 1
	}
	return 0
}

// versionOf hashes what exists among bodies: the same in every replica.
func versionOf(bodies []*view.Body) string {
	const block = 4096
	h := sha256.New()
	buf := make([]byte, 0, block)
	for _, b := range bodies {
		if !b.Exists() {
			continue
		}
		if len(buf)+len(b.Name())+1+len(b.Version()) > block {
			h.Write(buf)
			buf = buf[:0]
		}
		buf = append(append(append(buf, b.Name()...), 0), b.Version()...)
	}
	h.Write(buf)
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// existing returns what exists among bodies.
func existing(bodies []*view.Body) []*view.Body {
	missing := func(b *view.Body) bool { return !b.Exists() }
	if !slices.ContainsFunc(bodies, missing) {
		return bodies
	}
	return slices.DeleteFunc(slices.Clone(bodies), missing)
}

// change is what takes a client from one situation to another.
type change struct {
	// upserts are new to the client or differ from what it has.
	upserts []*view.Body
	// gone are those that the client has and that exist no more. What it dropped itself is not
	// among them.
	gone []*view.Body
	// absent are names newly asked for that don't exist.
	absent []string
}

func (c *change) empty() bool { return len(c.upserts)+len(c.gone)+len(c.absent) == 0 }

// compare returns what leads from one content to the next, whose subscription is given.
func compare(from, to *content, wanted *subscription) *change {
	c := &change{}
	a, b := from.bodies, to.bodies
	if len(a) == 0 { // the lists of those that come are the same memory as what they lead to
		c.upserts = existing(b)
		for _, x := range b {
			if !x.Exists() {
				c.absent = append(c.absent, x.Name())
			}
		}
		return c
	}
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Name() < b[0].Name():
			if a[0].Exists() && wanted.wants(a[0].Name()) {
				c.gone = append(c.gone, a[0])
			}
			a = a[1:]
		case len(a) == 0 || b[0].Name() < a[0].Name():
			c.enter(b[0])
			b = b[1:]
		default:
			c.follow(a[0], b[0])
			a, b = a[1:], b[1:]
		}
	}
	return c
}

// enter takes up what the client doesn't have.
func (c *change) enter(b *view.Body) {
	if b.Exists() {
		c.upserts = append(c.upserts, b)
	} else {
		c.absent = append(c.absent, b.Name())
	}
}

// follow takes up what became of what the client has.
func (c *change) follow(old, now *view.Body) {
	switch {
	case now.Exists() && (!old.Exists() || old.Version() != now.Version()):
		c.upserts = append(c.upserts, now)
	case !now.Exists() && old.Exists():
		c.gone = append(c.gone, old)
	}
}
