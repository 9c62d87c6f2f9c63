package swap

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// past is what ran before something took its place.
type past struct {
	entry *manifest.Entry
	// text is the plugins.yaml in which it stood; nil: in none.
	text []byte
	// wrote is what the file became with what took its place, if a command wrote that.
	wrote []byte
}

// before returns what ran before a plugin's last change, and its window if it is still warm.
func (s *Swapper) before(name string, now *manifest.Entry) (was past, warm *window) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.ofLocked(name)
	if n := len(p.past); n > 0 {
		was = p.past[n-1]
	}
	w := p.window
	switch {
	case w == nil || w.over() || w.c.shown.What == doRollback || w.last == nil:
		return was, nil
	case was.entry != nil && manifest.Same(w.last, was.entry):
		return was, w
	case manifest.Same(w.last, now) && unpinned(now):
		return past{entry: w.last}, w // it was restarted, from what may be another program
	}
	return was, nil
}

// replaced notes that e runs in the place of last: by a rollback, or so that one may come.
func (s *Swapper) replaced(c *attempt, last, e *manifest.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.ofLocked(e.Name)
	if manifest.Same(last, e) {
		return
	}
	if n := len(p.past); c.shown.What == doRollback && n > 0 {
		p.text, p.past = p.past[n-1].text, p.past[:n-1]
		return
	}
	p.past = append(p.past, past{entry: last, text: p.text})
	if n := len(p.past); n > historyLength {
		p.past = slices.Delete(p.past, 0, n-historyLength)
	}
	p.text = s.textOfLocked(e)
}

// returned notes that last runs again in the place of what a change had brought, which did not do.
func (s *Swapper) returned(c *attempt, last, e *manifest.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.ofLocked(last.Name)
	switch n := len(p.past); {
	case c.shown.What == doRollback:
		p.past = append(p.past, past{entry: e, text: p.text})
		p.text = s.textOfLocked(last)
	case n > 0 && manifest.Same(p.past[n-1].entry, last):
		p.text, p.past = p.past[n-1].text, p.past[:n-1]
	}
}

// forgetPast notes that a plugin begins anew: what ran under its name before is another matter.
func (s *Swapper) forgetPast(e *manifest.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.ofLocked(e.Name)
	p.past, p.text = nil, s.textOfLocked(e)
}

// writtenLocked notes that the file has what runs, since a command wrote it.
func (s *Swapper) writtenLocked(c *attempt, before, text []byte) {
	c.undo, c.wrote = before, text
	p := s.ofLocked(c.shown.Plugin)
	p.text = text
	if n := len(p.past); n > 0 && c.shown.What == doSwap {
		p.past[n-1].wrote = text
	}
}
