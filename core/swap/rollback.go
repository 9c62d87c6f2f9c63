package swap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/audit"
	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/state"
)

// past is what ran before something took its place.
type past struct {
	entry *manifest.Entry
	// text is the plugins.yaml in which it stood; nil: in none.
	text []byte
	// wrote is what the file became with what took its place, if a command wrote that.
	wrote []byte
}

// Rollback takes back the last swap of a plugin: what ran before takes its place again, at once if
// it is still warm. Another rollback goes back further.
func (s *Swapper) Rollback(ctx context.Context, name string, o Options) (*Change, error) {
	s.hurry()
	release, err := s.take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	s.sync(ctx)
	now, _ := s.current().Get(name)
	switch {
	case now == nil:
		return nil, fmt.Errorf("there is no plugin %s", name)
	case !now.Runs():
		return nil, fmt.Errorf("plugin %s does not run; coxswain plugins enable %s", name, name)
	}
	was, warm := s.before(name, now)
	if was.entry == nil {
		return nil, fmt.Errorf("there is nothing to go back to: since this control plane started %s was not swapped, or all that was is taken back; coxswain plugins show %s has its last changes",
			name, name)
	}
	text, note := s.textBefore(was)
	c := s.open(ctx, doRollback, now, was.entry, o)
	c.note(s, "%s", whatIsUndone(now, was.entry, warm != nil))
	if note != "" {
		c.note(s, "%s", note)
	}
	err = errOver
	if warm != nil {
		err = warm.recall(ctx, c, o)
	}
	if errors.Is(err, errOver) {
		err = s.replace(ctx, was.entry, c, o)
	}
	if err == nil && !o.DryRun && !o.Ephemeral && text != nil {
		s.write(c, text)
	}
	return s.copied(c), err
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
	case w == nil || w.over() || w.c.What == doRollback || w.last == nil:
		return was, nil
	case was.entry != nil && manifest.Same(w.last, was.entry):
		return was, w
	case manifest.Same(w.last, now) && unpinned(now):
		return past{entry: w.last}, w // it was restarted, from what may be another program
	}
	return was, nil
}

// whatIsUndone says how going back is done, and what of the entry it concerns.
func whatIsUndone(now, was *manifest.Entry, warm bool) string {
	text := "the last change is undone"
	if keys := manifest.Differing(now, was); len(keys) > 0 {
		text += ", of the entry's " + strings.Join(keys, ", ")
	}
	switch {
	case warm:
		return text + "; the instance that ran before is warm still"
	case unpinned(was):
		return text + "; a new instance starts, of whatever is at its program's path now, for it was not pinned"
	}
	return text + "; a new instance starts"
}

// unpinned reports whether an entry may run another program each time that it is started.
func unpinned(e *manifest.Entry) bool {
	return e.Process != nil && e.SHA256 == "" || e.Wasm != nil && e.Wasm.SHA256 == "" && e.SHA256 == ""
}

// textBefore is what plugins.yaml becomes with an entry as it was; nil: it stays as it is. The note
// says what else there is to know.
func (s *Swapper) textBefore(was past) (text []byte, note string) {
	name := was.entry.Name
	if s.cfg.File == "" || was.entry.Of != "" {
		return nil, ""
	}
	if in, _ := s.file.Get(name); in != nil && manifest.Same(in, was.entry) {
		return nil, ""
	}
	if was.text == nil {
		return nil, "what runs then stands in no plugins.yaml, for it was swapped in with --ephemeral: the file stays as it is, and names something else"
	}
	if was.wrote != nil && slices.Equal(was.wrote, s.text) {
		return was.text, ""
	}
	text, err := s.withEntryOf(was.text, name)
	if err == nil {
		var set *manifest.Set
		if set, err = s.cfg.Parse(text); err == nil {
			if in, _ := set.Get(name); in == nil || !manifest.Same(in, was.entry) {
				err = errors.New("its entry would mean something else there")
			}
		}
	}
	if err != nil {
		return nil, fmt.Sprintf("plugins.yaml stays as it is, and names something else: %v", err)
	}
	return text, ""
}

// withEntryOf is the file's text with an entry as another text has it.
func (s *Swapper) withEntryOf(other []byte, name string) ([]byte, error) {
	from, err := manifest.NewEdit(other)
	if err != nil {
		return nil, err
	}
	to, err := manifest.NewEdit(s.text)
	if err != nil {
		return nil, err
	}
	return to.Entry(name, func(m manifest.Mapping) error {
		_, err := from.Entry(name, func(was manifest.Mapping) error {
			m.Become(was)
			return nil
		})
		return err
	})
}

// replaced notes that e runs in the place of last: by a rollback, or so that one may come.
func (s *Swapper) replaced(c *Change, last, e *manifest.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.ofLocked(e.Name)
	if manifest.Same(last, e) {
		return
	}
	if n := len(p.past); c.What == doRollback && n > 0 {
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
func (s *Swapper) returned(c *Change, last, e *manifest.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.ofLocked(last.Name)
	switch n := len(p.past); {
	case c.What == doRollback:
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

// textOfLocked is the file's text, if an entry stands in it as it is.
func (s *Swapper) textOfLocked(e *manifest.Entry) []byte {
	if in, _ := s.file.Get(e.Name); in != nil && manifest.Same(in, e) {
		return s.text
	}
	return nil
}

// writtenLocked notes that the file has what runs, since a command wrote it.
func (s *Swapper) writtenLocked(c *Change, before, text []byte) {
	c.undo, c.wrote = before, text
	p := s.ofLocked(c.Plugin)
	p.text = text
	if n := len(p.past); n > 0 && c.What == doSwap {
		p.past[n-1].wrote = text
	}
}

// errOver is that a window is over, so that nothing is warm any more.
var errOver = errors.New("the window is over")

// recall is a command's wish that the old instance come back. Whoever sends it has the turn.
type recall struct {
	ctx  context.Context
	c    *Change
	o    Options
	done chan error
}

// over reports whether the old instance is gone, or back.
func (w *window) over() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// recall lets the old instance be served again, or only compares it.
func (w *window) recall(ctx context.Context, c *Change, o Options) error {
	r := recall{ctx, c, o, make(chan error, 1)}
	defer c.explain(w.s)
	select {
	case w.recalls <- r:
		return <-r.done
	case <-w.done:
		return errOver
	case <-w.returning:
		err := errors.New("the swap is being rolled back already")
		c.step(w.s, Failed, err.Error())
		return err
	case <-ctx.Done():
		c.step(w.s, Failed, context.Cause(ctx).Error())
		return context.Cause(ctx)
	}
}

// undo does what a recall wants. It reports whether the window is over with that.
func (w *window) undo(r recall) (over bool, err error) {
	s := w.s
	ctx, cancel := context.WithCancelCause(r.ctx)
	defer cancel(nil)
	answered := make(chan struct{})
	defer close(answered)
	go func() {
		select {
		case <-w.closing:
			cancel(errors.New("the control plane ends"))
		case <-w.refused: // it comes back by itself, which must not wait
			cancel(errors.New("proxies refuse what they got: it is being rolled back already"))
		case <-w.failed:
			cancel(errors.New("it failed: it is being rolled back already"))
		case <-answered:
		}
	}()
	now, _ := s.current().Get(w.last.Name)
	next := s.current().With(w.last)
	err = w.st.wait(ctx, func(ctx context.Context) error {
		return w.st.trial.Switch(ctx, state.RulesOf(next), func(d *guard.Difference) error {
			r.c.found(s, d)
			return judge(guardOf(w.last).Check(d), r.o)
		})
	})
	if err != nil {
		return false, s.stopped(r.c, err)
	}
	w.note()
	if _, err := w.st.process.Exchange(); err != nil {
		r.c.note(s, "%v", err)
	}
	s.runs(next)
	s.replaced(r.c, now, w.last)
	w.st.end()
	s.mu.Lock()
	w.c.audited = audit.Entry{} // the command's own entry says it
	s.mu.Unlock()
	w.c.step(s, RolledBack, "it was asked for: coxswain plugins rollback")
	r.c.step(s, Switched)
	r.c.step(s, Kept)
	return true, nil
}
