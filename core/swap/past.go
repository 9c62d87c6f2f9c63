package swap

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// pasts keeps what ran under each name before, so that a rollback can go back to it. It belongs to
// whoever has the turn.
type pasts struct {
	file *document
	all  map[string]*lineage
}

// lineage is what ran under a name, one after the other.
type lineage struct {
	// past is what ran before, the last of it last.
	past []past
	// text is the plugins.yaml in which what runs stands; nil: in none.
	text []byte
}

// past is what ran before something took its place.
type past struct {
	entry *manifest.Entry
	// text is the plugins.yaml in which it stood; nil: in none.
	text []byte
	// wrote is what the file became with what took its place, if a command wrote that.
	wrote []byte
}

// newPasts has nothing that ran before; what runs at first stands in the file.
func newPasts(file *document, first *manifest.Set) *pasts {
	p := &pasts{file: file, all: map[string]*lineage{}}
	_, text := file.now()
	for _, e := range first.Plugins {
		p.of(e.Name).text = text
	}
	return p
}

func (p *pasts) of(name string) *lineage {
	l := p.all[name]
	if l == nil {
		l = &lineage{}
		p.all[name] = l
	}
	return l
}

// last is what ran last before what runs now; its entry is nil if there was none.
func (p *pasts) last(name string) past {
	all := p.of(name).past
	if n := len(all); n > 0 {
		return all[n-1]
	}
	return past{}
}

// replaced notes that e runs in the place of last: by a rollback, or so that one may come.
func (p *pasts) replaced(c *attempt, last, e *manifest.Entry) {
	l := p.of(e.Name)
	if manifest.Same(last, e) && last.ArtifactDigest() == e.ArtifactDigest() {
		return
	}
	if n := len(l.past); c.shown.What == doRollback && n > 0 {
		l.text, l.past = l.past[n-1].text, l.past[:n-1]
		return
	}
	l.past = append(l.past, past{entry: last, text: l.text})
	if n := len(l.past); n > historyLength {
		l.past = slices.Delete(l.past, 0, n-historyLength)
	}
	l.text = p.file.textOf(e)
}

// returned notes that last runs again in the place of what a change had brought, which did not do.
func (p *pasts) returned(c *attempt, last, e *manifest.Entry) {
	l := p.of(last.Name)
	switch n := len(l.past); {
	case c.shown.What == doRollback:
		l.past = append(l.past, past{entry: e, text: l.text})
		l.text = p.file.textOf(last)
	case n > 0 && manifest.Same(l.past[n-1].entry, last):
		l.text, l.past = l.past[n-1].text, l.past[:n-1]
	}
}

// forget notes that a plugin begins anew: what ran under its name before is another matter.
func (p *pasts) forget(e *manifest.Entry) {
	l := p.of(e.Name)
	l.past, l.text = nil, p.file.textOf(e)
}

// written notes that the file has what runs, since a command wrote it.
func (p *pasts) written(c *attempt, text []byte) {
	l := p.of(c.shown.Plugin)
	l.text = text
	if n := len(l.past); n > 0 && c.shown.What == doSwap {
		l.past[n-1].wrote = text
	}
}
