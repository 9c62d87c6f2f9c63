package swap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/state"
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

const (
	// putOff is how long a file is waited for that goes on changing.
	putOff = time.Second
	// lookAgain is how often it is read though it seems to be as it was: a write may leave size and
	// time as they are.
	lookAgain = 10 * time.Second
)

// gaze decides when a file is read.
type gaze struct {
	seen sight
	// since is when it was first seen to have changed; zero: it is as it was read.
	since, read time.Time
}

// due reports whether it is time to read the file: once it has stayed as it is from one look to the
// next, for editors write in pieces.
func (g *gaze) due(now time.Time, is sight) bool {
	switch {
	case !is.same(g.seen):
		g.seen = is
		if g.since.IsZero() {
			g.since = now
		}
		if now.Sub(g.since) < putOff {
			return false
		}
	case g.since.IsZero() && now.Sub(g.read) < lookAgain:
		return false
	}
	g.since, g.read = time.Time{}, now
	return true
}

// sight is what can be seen of a file without reading it; nil: it can't be seen.
type sight struct{ info os.FileInfo }

func lookAt(path string) sight {
	info, err := os.Stat(path)
	if err != nil {
		return sight{}
	}
	return sight{info}
}

func (a sight) same(b sight) bool {
	if a.info == nil || b.info == nil {
		return a.info == b.info
	}
	return os.SameFile(a.info, b.info) && a.info.ModTime().Equal(b.info.ModTime()) && a.info.Size() == b.info.Size()
}

// Reread applies the file as it is now.
func (s *Swapper) Reread(ctx context.Context) { s.reread(ctx) }

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

// read returns the file as it is now, or as it was applied last where it can't be read.
func (s *Swapper) read() (*manifest.Set, []byte) {
	if s.cfg.File == "" {
		return s.file, s.text
	}
	text, err := os.ReadFile(s.cfg.File)
	if err == nil && bytes.Equal(text, s.text) {
		s.blame(nil)
		return s.file, s.text
	}
	var set *manifest.Set
	if err == nil {
		set, err = s.cfg.Parse(text)
	}
	s.blame(err)
	if err != nil {
		return s.file, s.text
	}
	return set, text
}

// blame keeps, and says once, what is wrong with the file; and once that nothing is any more.
func (s *Swapper) blame(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	s.mu.Lock()
	new := s.fault != text
	s.fault = text
	s.mu.Unlock()
	switch {
	case new && err != nil:
		s.cfg.Log.Error("plugins.yaml can't be followed; nothing was changed", "error", text)
	case new:
		s.cfg.Log.Info("plugins.yaml is followed again")
	}
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

// lostEntries are the names of entries that a file has no more, if there are several: more likely
// it was cut than meant.
func lostEntries(steps []step, to *manifest.Set) []string {
	var names []string
	for _, st := range steps {
		if in, _ := to.Get(st.entry.Name); st.what == doRemove && in == nil && st.entry.Of == "" {
			names = append(names, st.entry.Name)
		}
	}
	if len(names) < 2 {
		return nil
	}
	return names
}

// arrange gives all plugins their places.
func (s *Swapper) arrange(set *manifest.Set) {
	s.runs(set)
	s.cfg.Control.Reorder(places(set), state.RulesOf(set))
}

// only leaves entries out that are in neither the file nor what runs.
func only(set, file *manifest.Set) *manifest.Set {
	var all []*manifest.Entry
	for _, e := range set.Plugins {
		if in, _ := file.Get(e.Name); in != nil || e.Runs() {
			all = append(all, e)
		}
	}
	return set.Of(all)
}

// do does one step. The turn is held.
func (s *Swapper) do(ctx context.Context, st step, o Options) error {
	e := st.entry
	last, _ := s.current().Get(e.Name)
	switch st.what {
	case doAdd:
		return s.add(ctx, e, s.open(ctx, st.what, last, e, o))
	case doRemove:
		return s.remove(ctx, e, s.open(ctx, st.what, last, e, o), o)
	}
	if last == nil || !last.Runs() {
		return fmt.Errorf("plugin %s does not run", e.Name)
	}
	return s.replace(ctx, e, s.open(ctx, st.what, last, e, o), o)
}

// describe says in a word what an entry runs.
func describe(e *manifest.Entry) string {
	switch {
	case e == nil || e.Disabled:
		return ""
	case e.Process != nil:
		return "process " + e.Process.Command
	case e.Wasm != nil:
		return "wasm " + e.Wasm.Path
	}
	return "builtin " + e.Builtin
}

// add starts a plugin that did not run.
func (s *Swapper) add(ctx context.Context, e *manifest.Entry, c *Change) error {
	on := *e
	on.Disabled = false
	set := s.current().With(&on)
	_, order := set.Get(e.Name)
	c.step(s, Starting)
	err := s.cfg.Control.Declare(state.Expect(&on, order), state.RulesOf(set))
	if err == nil {
		err = s.cfg.Host.Add(&on, order)
	}
	if err != nil {
		c.step(s, Failed, err.Error())
		return err
	}
	s.runs(set)
	s.forgetPast(&on)
	ctx, cancel := context.WithTimeout(ctx, patience(e))
	defer cancel()
	if err := s.cfg.Host.Up(ctx, e.Name); err != nil {
		c.step(s, Failed, err.Error()+" (it is tried again and again)")
		return err
	}
	c.step(s, Switched)
	c.step(s, Kept)
	return nil
}

// remove ends a plugin, unless proxies would lose something by it, or it is one of several that
// plugins.yaml has lost.
func (s *Swapper) remove(ctx context.Context, e *manifest.Entry, c *Change, o Options) error {
	if o.DryRun {
		var done func()
		ctx, done = s.giveWay(ctx, e.Name)
		defer done()
	} else {
		s.closeWindow(e.Name)
	}
	off := *e
	off.Disabled = true
	set := s.current().With(&off)
	applies := e.LossApplies()
	err := s.cfg.Control.Removal(ctx, e.Name, state.RulesOf(set), func(d *guard.Difference, why []string) error {
		c.found(s, d)
		if slices.Contains(o.lost, e.Name) {
			why = append(why, fmt.Sprintf("plugins.yaml has lost %d entries at once: %s", len(o.lost), strings.Join(o.lost, ", ")))
		}
		if applies {
			why = nil
		}
		return judge(why, o)
	})
	var refused *refusedError
	switch {
	case errors.As(err, &refused):
		c.step(s, Refused, append(slices.Clone(refused.why), "it goes on; `coxswain plugins disable "+e.Name+" --force` ends it")...)
		return err
	case err != nil:
		return s.stopped(c, err)
	}
	s.cfg.Host.Remove(e.Name)
	if err := s.cfg.Control.Withdraw(e.Name, state.RulesOf(set), o.Force || applies); err != nil {
		c.step(s, Failed, err.Error())
		return err
	}
	s.runs(set)
	c.step(s, Switched)
	c.step(s, Kept)
	return nil
}

// errNoFile is that there is nothing to write to.
var errNoFile = errors.New("the plugin set is built in and can't be written to; give --ephemeral, or start with --plugins FILE")
