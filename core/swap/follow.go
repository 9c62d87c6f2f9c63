package swap

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/coxswain-mesh/coxswain/core/audit"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/ticks"
)

// follow applies what the file says, whenever it changes, until ctx ends. It looks at the file
// itself rather than for notices of its directory: these come for all that is written there, may be
// lost, and say nothing of a link further up that leads elsewhere now.
func (s *Swapper) follow(ctx context.Context) error {
	g := gaze{read: time.Now()}
	g.seen = lookAt(s.cfg.File)
	g.since = g.read // what was written since the start is read, too
	for now := range ticks.Every(ctx, glance) {
		if g.due(now, lookAt(s.cfg.File)) {
			s.reread(ctx)
		}
	}
	return nil
}

// reread takes its turn and applies the file.
func (s *Swapper) reread(ctx context.Context) {
	release, err := s.take(ctx)
	if err != nil {
		return
	}
	defer release()
	s.sync(ctx)
}

// sync applies the file if it has changed, and the rows that it has instances for. What is wrong
// with the file changes nothing. The turn is held.
func (s *Swapper) sync(ctx context.Context) {
	set, text := s.read()
	if tables := set.Tables(); len(tables) > 0 {
		if rows, ok := s.cfg.Control.Following(tables); ok {
			s.instances.take(rows)
		}
	}
	to := s.expand(set)
	edited := !bytes.Equal(text, s.text)
	if !edited && len(s.instances.due(plan(s.applied, to), time.Now())) == 0 {
		return
	}
	from := s.applied
	for _, e := range s.held {
		from = from.With(e)
	}
	s.mu.Lock()
	s.file, s.text = set, text
	s.mu.Unlock()
	s.apply(ctx, from, to)
	s.applied = s.owed(to)
}

// apply comes from one file to another, step by step. A step that fails leaves that plugin as it
// was.
func (s *Swapper) apply(ctx context.Context, from, to *manifest.Set) {
	steps := s.instances.due(plan(from, to), time.Now())
	for _, st := range steps {
		if st.what == doRemove {
			s.closeWindow(st.entry.Name) // its old instance may have the name's place
		}
	}
	s.held = map[string]*manifest.Entry{}
	lost := lostEntries(steps, to)
	s.arrange(merged(s.current(), to))
	for _, st := range steps {
		if st.entry.Of == "" {
			s.cfg.Log.Info("plugins.yaml changed", "plugin", st.entry.Name, "what", st.what)
		} else {
			s.cfg.Log.Info("a row changed that a plugin has an instance for", "plugin", st.entry.Name, "what", st.what)
		}
		if st.what == doAdd && s.held[st.entry.Name] != nil {
			continue // one of another kind, whose name is taken as long
		}
		acting, over := s.begins(s.acting(ctx, st), st)
		err := s.do(acting, st, Options{lost: lost})
		over()
		if err != nil && ctx.Err() != nil {
			return
		}
		s.done(st, err)
		if st.what == doRemove && errors.Is(err, ErrRefused) {
			s.held[st.entry.Name], _ = s.current().Get(st.entry.Name)
		}
	}
	s.arrange(only(merged(s.current(), to), to))
}

// acting says who a change is by: rows, or the file.
func (s *Swapper) acting(ctx context.Context, st step) context.Context {
	if st.entry.Of != "" {
		return audit.Acting(ctx, audit.ByRow)
	}
	return audit.Acting(ctx, s.cfg.File)
}
