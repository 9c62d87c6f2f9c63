package swap

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// Rollback takes back the last swap of a plugin: what ran before takes its place again, at once if
// it is still warm. Another rollback goes back further.
func (s *Swapper) Rollback(ctx context.Context, name string, o Options) (_ *Change, err error) {
	if o.DryRun {
		o.run = s.dryRuns.begin(ctx, commandOf(doRollback, name, Request{}, o))
		defer func() { o.run.end(err) }()
	}
	release, err := s.follower.interrupt(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	now, _ := s.running.now().Get(name)
	switch {
	case now == nil:
		return nil, fmt.Errorf("there is no plugin %s", name)
	case !now.Runs():
		return nil, fmt.Errorf("plugin %s does not run; coxswain plugins enable %s", name, name)
	}
	was, warm := s.windows.before(name, now)
	if was.entry == nil {
		return nil, fmt.Errorf("there is nothing to go back to: since this control plane started %s was not swapped, or "+
			"all that was is taken back; coxswain plugins show %s has its last changes",
			name, name)
	}
	if o.Declared {
		if was.entry, err = s.known(doRollback, was.entry); err != nil {
			return nil, err
		}
	}
	o.run.proceeds(1)
	text, note := s.editor.textBefore(was)
	c := s.history.open(ctx, doRollback, now, was.entry, o)
	c.note("%s", whatIsUndone(now, was.entry, warm != nil))
	if note != "" {
		c.note("%s", note)
	}
	err = errOver
	if warm != nil {
		err = warm.recall(ctx, c, o)
	}
	if errors.Is(err, errOver) {
		err = s.changer.replace(ctx, was.entry, c, o)
	}
	if err == nil && !o.DryRun && !o.Ephemeral && text != nil {
		s.write(c, text)
	}
	return c.now(), err
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
		return text + "; warning: its program's sha256 was not pinned, so the file that is at its path now was started"
	}
	return text + "; a new instance starts"
}

// unpinned reports whether an entry may run another program each time that it is started.
func unpinned(e *manifest.Entry) bool {
	if e.Plugin != "" {
		return false
	}
	return e.Process != nil && e.SHA256 == "" || e.Wasm != nil && e.Wasm.SHA256 == "" && e.SHA256 == ""
}
