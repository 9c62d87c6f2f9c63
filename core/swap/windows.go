package swap

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// windows keeps plugins that were replaced until it is clear that they need not come back.
type windows struct {
	turn    turn
	running *running
	file    *document
	editor  *editor
	pasts   *pasts

	// run are those that are open.
	run sync.WaitGroup

	mu sync.Mutex
	// last are the last ones by plugin, over or not.
	last map[string]*window
	// programs are what could be seen of programs that were started later than the control plane
	// when they were, by plugin.
	programs map[string]stamp
}

func newWindows(turn turn, running *running, file *document, editor *editor, pasts *pasts) *windows {
	return &windows{turn: turn, running: running, file: file, editor: editor, pasts: pasts, last: map[string]*window{}, programs: map[string]stamp{}}
}

// open keeps the old instance warm for the entry's window.
func (ws *windows) open(st *standing, last, e *manifest.Entry, c *attempt, failed <-chan struct{}) {
	limit, length := rollbackOf(e)
	w := &window{
		in: ws, st: st, last: last, c: c, limit: limit, refused: st.trial.OnRefusals(limit), failed: failed,
		returning: make(chan struct{}), closing: make(chan struct{}), done: make(chan struct{}), recalls: make(chan recall),
	}
	c.step(Switched)
	c.warm(time.Now().Add(length))
	ws.starts(e.Name, st.program)
	ws.mu.Lock()
	ws.last[e.Name] = w
	ws.mu.Unlock()
	ws.run.Go(func() { w.run(length) })
}

// of returns a plugin's last window, over or not; nil: it has none.
func (ws *windows) of(name string) *window {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.last[name]
}

// giveWay returns a context for what only looks at a plugin: it ends when the plugin's old instance
// is to come back, which must not wait.
func (ws *windows) giveWay(ctx context.Context, name string) (_ context.Context, done func()) {
	w := ws.of(name)
	if w == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-w.returning:
			cancel(errors.New("the swap before it is being rolled back"))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// before returns what ran before a plugin's last change, and its window if it is still warm. The
// turn is held.
func (ws *windows) before(name string, now *manifest.Entry) (was past, warm *window) {
	was = ws.pasts.last(name)
	w := ws.of(name)
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

// close ends the window of a plugin, if it has one: its old instance goes.
func (ws *windows) close(name string) {
	ws.mu.Lock()
	w := ws.last[name]
	delete(ws.last, name)
	ws.mu.Unlock()
	if w != nil {
		close(w.closing)
		<-w.done
	}
}

// end closes all, and waits until they are over.
func (ws *windows) end() {
	ws.mu.Lock()
	names := slices.Collect(maps.Keys(ws.last))
	ws.mu.Unlock()
	for _, name := range names {
		ws.close(name)
	}
	ws.run.Wait()
}

// starts notes what a plugin is started from.
func (ws *windows) starts(name string, from stamp) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.programs[name] = from
}

// startedFrom returns the stamp of what a plugin was started from, as far as that is known: its
// program may have changed since.
func (ws *windows) startedFrom(name string, now stamp) stamp {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if was := ws.programs[name]; was.paths == now.paths {
		return was
	}
	return now
}
