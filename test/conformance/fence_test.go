package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A fence is an extension configuration, the type that comes last in a push. Each revision of the
// files has fences of its own, so that a stream on which one is received has got all that the
// revision changes, and a server that answers a request for one has answered all before it.
const (
	fenceKind = "ecds"
	fenceName = "fence-"
	// fences of a revision.
	fences = 8
)

// publish writes the files with new fences.
func (s *server) publish() error {
	s.revision++
	all := maps.Clone(s.offered)
	all[fenceKind] = maps.Clone(all[fenceKind])
	if all[fenceKind] == nil {
		all[fenceKind] = map[string]string{}
	}
	for i := range fences {
		all[fenceKind][fmt.Sprint(fenceName, s.revision, "-", i)] = "-"
	}
	text, err := all.text()
	if err != nil {
		return err
	}
	return replace(s.file, text)
}

// observe waits until the revision is served, on a stream of its own.
func (p *player) observe() error {
	o := &player{server: p.server, delta: true}
	defer o.stop()
	c, err := o.on(fenceKind)
	if err != nil {
		return err
	}
	return o.fence(c)
}

// fence waits until the server has done all that it was told.
func (p *player) fence(c *conversation) error {
	name := fmt.Sprint(fenceName, p.revision, "-", len(c.fences)%fences)
	r := request{kind: fenceKind, names: append([]string{name}, c.extensions...), subscribe: []string{name}, unsubscribe: c.fences[max(0, len(c.fences)-1):]}
	if n := c.nonces[fenceKind]; len(n) > 0 {
		r.nonce = n[len(n)-1]
	}
	c.fences = append(c.fences, name)
	if err := c.send(r); err != nil {
		return err
	}
	for {
		got, err := c.next()
		if err != nil {
			return err
		}
		_, done := got.resources[name]
		c.take(got)
		if done { // extension configurations go on once those before are answered
			return c.send(request{kind: fenceKind, names: r.names, nonce: got.nonce, version: got.version})
		}
	}
}

// take keeps a response, but for what it says about fences.
func (c *conversation) take(r *response) {
	c.nonces[r.kind] = append(c.nonces[r.kind], r.nonce)
	about := func(name string) bool { return strings.HasPrefix(name, fenceName) }
	before := len(r.resources) + len(r.removed)
	maps.DeleteFunc(r.resources, func(name, _ string) bool { return about(name) })
	r.removed = slices.DeleteFunc(r.removed, about)
	left := len(r.resources) + len(r.removed)
	if left < before && left == 0 || before == 0 && r.kind == fenceKind && len(c.fences) > 0 {
		return
	}
	c.pending = append(c.pending, r)
}
