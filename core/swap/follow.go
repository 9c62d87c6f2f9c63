package swap

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/audit"
	"github.com/coxswain-mesh/coxswain/core/control"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/ticks"
)

// follower applies what plugins.yaml says, and the rows that it has instances for.
type follower struct {
	control *control.Control
	host    *host.Host
	log     *slog.Logger
	turn    turn
	running *running
	file    *document
	desired *desired
	windows *windows
	changer *changer

	mu sync.Mutex
	// underway is the swap of an instance that takes place; nil: none does.
	underway *underway
}

// underway is the swap of an instance that takes place.
type underway struct {
	entry  *manifest.Entry
	cancel context.CancelCauseFunc
}

// follow applies what the file says, whenever it changes, until ctx ends. It looks at the file
// itself rather than for notices of its directory: these come for all that is written there, may be
// lost, and say nothing of a link further up that leads elsewhere now.
func (f *follower) follow(ctx context.Context) error {
	p := poll{read: time.Now()}
	p.seen = statFile(f.file.path)
	p.since = p.read // what was written since the start is read, too
	for now := range ticks.Every(ctx, pollEvery) {
		if p.due(now, statFile(f.file.path)) {
			f.reread(ctx)
		}
	}
	return nil
}

// interrupt takes the turn for a command, which need not wait for the swap of an instance, and
// applies the file as it is before that.
func (f *follower) interrupt(ctx context.Context) (release func(), err error) {
	f.instead("a command came first", func(*manifest.Entry) bool { return true })
	release, err = f.turn.acquire(ctx)
	if err != nil {
		return nil, err
	}
	f.sync(ctx)
	return release, nil
}

// reread takes its turn and applies the file.
func (f *follower) reread(ctx context.Context) {
	release, err := f.turn.acquire(ctx)
	if err != nil {
		return
	}
	defer release()
	f.sync(ctx)
}

// sync applies the file if it has changed, and the rows that it has instances for. What is wrong
// with the file changes nothing. The turn is held.
func (f *follower) sync(ctx context.Context) {
	set, text := f.file.read()
	if tables := set.Tables(); len(tables) > 0 {
		if rows, ok := f.control.Following(tables); ok {
			f.desired.set(rows)
		}
	}
	to := f.desired.expand(set)
	_, known := f.file.now()
	edited := !bytes.Equal(text, known)
	if !edited && len(f.desired.due(plan(f.desired.applied, to), time.Now())) == 0 {
		return
	}
	from := f.desired.start()
	f.file.becomes(set, text)
	f.apply(ctx, from, to)
	f.desired.reached(to)
}

// apply comes from one file to another, step by step. A step that fails leaves that plugin as it
// was.
func (f *follower) apply(ctx context.Context, from, to *manifest.Set) {
	steps := f.desired.due(plan(from, to), time.Now())
	for _, st := range steps {
		if st.what == doRemove {
			f.windows.close(st.entry.Name) // its old instance may have the name's place
		}
	}
	f.desired.held = map[string]*manifest.Entry{}
	lost := lostEntries(steps, to)
	f.changer.arrange(merged(f.running.now(), to))
	for _, st := range steps {
		if st.entry.Of == "" {
			f.log.Info("plugins.yaml changed", "plugin", st.entry.Name, "what", st.what)
		} else {
			f.log.Info("a row changed that a plugin has an instance for", "plugin", st.entry.Name, "what", st.what)
		}
		if st.what == doAdd && f.desired.held[st.entry.Name] != nil {
			continue // one of another kind, whose name is taken as long
		}
		acting, over := f.begins(f.acting(ctx, st), st)
		err := f.changer.do(acting, st, Options{lost: lost})
		over()
		if err != nil && ctx.Err() != nil {
			return
		}
		f.desired.done(st, err)
		if st.what == doRemove && errors.Is(err, ErrRefused) {
			f.desired.held[st.entry.Name], _ = f.running.now().Get(st.entry.Name)
		}
	}
	f.changer.arrange(only(merged(f.running.now(), to), to))
}

// acting says who a change is by: rows, or the file.
func (f *follower) acting(ctx context.Context, st step) context.Context {
	if st.entry.Of != "" {
		return audit.Acting(ctx, audit.ByRow)
	}
	return audit.Acting(ctx, f.file.path)
}

// letGo ends a plugin that only a guard kept: the file says nothing of it, or that it is disabled,
// already. The turn is held.
func (f *follower) letGo(ctx context.Context, e *manifest.Entry, o Options) error {
	err := f.changer.do(ctx, step{doRemove, e}, o)
	if err == nil && !o.DryRun {
		delete(f.desired.held, e.Name)
		f.changer.arrange(only(f.running.now(), f.desired.applied))
	}
	return err
}

// instead ends the swap of an instance that takes place, as something else is to be done first:
// what it waits for may take long. It is tried again.
func (f *follower) instead(why string, when func(*manifest.Entry) bool) {
	f.mu.Lock()
	u := f.underway
	f.mu.Unlock()
	if u != nil && when(u.entry) {
		u.cancel(errors.New(why))
	}
}

// begins notes that a step takes place, until the function that it returns is called.
func (f *follower) begins(ctx context.Context, st step) (context.Context, func()) {
	if st.entry.Of == "" || st.what != doSwap {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.underway = &underway{st.entry, cancel}
	return ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.underway = nil
		cancel(nil)
	}
}
