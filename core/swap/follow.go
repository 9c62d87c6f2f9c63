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
	release, err := s.turn.take(ctx)
	if err != nil {
		return
	}
	defer release()
	s.sync(ctx)
}

// sync applies the file if it has changed, and the rows that it has instances for. What is wrong
// with the file changes nothing. The turn is held.
func (s *Swapper) sync(ctx context.Context) {
	set, text := s.file.read()
	if tables := set.Tables(); len(tables) > 0 {
		if rows, ok := s.cfg.Control.Following(tables); ok {
			s.desired.take(rows)
		}
	}
	to := s.desired.expand(set)
	_, known := s.file.now()
	edited := !bytes.Equal(text, known)
	if !edited && len(s.desired.due(plan(s.desired.applied, to), time.Now())) == 0 {
		return
	}
	from := s.desired.start()
	s.file.becomes(set, text)
	s.apply(ctx, from, to)
	s.desired.reached(to)
}

// apply comes from one file to another, step by step. A step that fails leaves that plugin as it
// was.
func (s *Swapper) apply(ctx context.Context, from, to *manifest.Set) {
	steps := s.desired.due(plan(from, to), time.Now())
	for _, st := range steps {
		if st.what == doRemove {
			s.closeWindow(st.entry.Name) // its old instance may have the name's place
		}
	}
	s.desired.held = map[string]*manifest.Entry{}
	lost := lostEntries(steps, to)
	s.arrange(merged(s.running.now(), to))
	for _, st := range steps {
		if st.entry.Of == "" {
			s.cfg.Log.Info("plugins.yaml changed", "plugin", st.entry.Name, "what", st.what)
		} else {
			s.cfg.Log.Info("a row changed that a plugin has an instance for", "plugin", st.entry.Name, "what", st.what)
		}
		if st.what == doAdd && s.desired.held[st.entry.Name] != nil {
			continue // one of another kind, whose name is taken as long
		}
		acting, over := s.begins(s.acting(ctx, st), st)
		err := s.do(acting, st, Options{lost: lost})
		over()
		if err != nil && ctx.Err() != nil {
			return
		}
		s.desired.done(st, err)
		if st.what == doRemove && errors.Is(err, ErrRefused) {
			s.desired.held[st.entry.Name], _ = s.running.now().Get(st.entry.Name)
		}
	}
	s.arrange(only(merged(s.running.now(), to), to))
}

// acting says who a change is by: rows, or the file.
func (s *Swapper) acting(ctx context.Context, st step) context.Context {
	if st.entry.Of != "" {
		return audit.Acting(ctx, audit.ByRow)
	}
	return audit.Acting(ctx, s.cfg.File)
}
