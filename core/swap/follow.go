package swap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/fsnotify/fsnotify"
)

const (
	// settle is how long the file must stay as it is before it is read: editors write in pieces.
	settle = 100 * time.Millisecond
	// look is how often it is read without a notice, as those of some file systems don't come.
	look = 10 * time.Second
)

// follow applies what the file says, whenever it changes, until ctx ends. The directory is watched, as files are replaced.
func (s *Swapper) follow(ctx context.Context) error {
	notices := make(chan fsnotify.Event)
	if w, err := fsnotify.NewWatcher(); err == nil {
		defer func() { _ = w.Close() }()
		if err := w.Add(filepath.Dir(s.cfg.File)); err == nil {
			notices = w.Events
		}
	}
	timer := time.NewTimer(look)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-notices:
			if !ok {
				notices = nil
			}
			timer.Reset(settle)
		case <-timer.C:
			s.reread(ctx)
			timer.Reset(look)
		}
	}
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

// sync applies the file if it has changed. What is wrong with it changes nothing. The turn is held.
func (s *Swapper) sync(ctx context.Context) {
	if s.cfg.File == "" {
		return
	}
	text, err := os.ReadFile(s.cfg.File)
	if err == nil && bytes.Equal(text, s.text) {
		s.blame(nil)
		return
	}
	var set *host.Set
	if err == nil {
		set, err = s.cfg.Parse(text)
	}
	if err != nil {
		s.blame(err)
		return
	}
	s.blame(nil)
	from := s.file
	for _, e := range s.held {
		from = from.With(e)
	}
	s.mu.Lock()
	s.file, s.text = set, text
	s.mu.Unlock()
	s.apply(ctx, from, set)
}

// blame keeps, and says once, what is wrong with the file.
func (s *Swapper) blame(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	s.mu.Lock()
	new := s.fault != text
	s.fault = text
	s.mu.Unlock()
	if new && err != nil {
		s.cfg.Log.Error("plugins.yaml can't be followed; nothing was changed", "error", text)
	}
}

// apply comes from one file to another, step by step. A step that fails leaves that plugin as it was.
func (s *Swapper) apply(ctx context.Context, from, to *host.Set) {
	steps := plan(from, to)
	for _, st := range steps {
		if st.what == doRemove {
			s.closeWindow(st.entry.Name) // its old instance may have the name's place
		}
	}
	s.held = map[string]*host.Entry{}
	s.arrange(merged(s.current(), to))
	for _, st := range steps {
		s.cfg.Log.Info("plugins.yaml changed", "plugin", st.entry.Name, "what", st.what)
		if st.what == doAdd && s.held[st.entry.Name] != nil {
			continue // one of another kind, whose name is taken as long
		}
		err := s.do(ctx, st, Options{})
		if err != nil && ctx.Err() != nil {
			return
		}
		if st.what == doRemove && errors.Is(err, ErrRefused) {
			s.held[st.entry.Name], _ = s.current().Get(st.entry.Name)
		}
	}
	s.arrange(only(merged(s.current(), to), to))
}

// arrange gives all plugins their places.
func (s *Swapper) arrange(set *host.Set) {
	s.runs(set)
	s.cfg.Control.Reorder(places(set), control.RulesOf(set))
}

// only leaves entries out that are in neither the file nor what runs.
func only(set, file *host.Set) *host.Set {
	var all []*host.Entry
	for _, e := range set.Plugins {
		if in, _ := file.Get(e.Name); in != nil || !e.Disabled {
			all = append(all, e)
		}
	}
	return set.Of(all)
}

// do does one step. The turn is held.
func (s *Swapper) do(ctx context.Context, st step, o Options) error {
	e := st.entry
	last, _ := s.current().Get(e.Name)
	from, to := describe(last), describe(e)
	switch st.what {
	case doAdd:
		c := s.open(e.Name, st.what, "", to)
		return s.add(ctx, e, c)
	case doRemove:
		c := s.open(e.Name, st.what, from, "")
		return s.remove(e, c, o)
	}
	if last == nil || last.Disabled {
		return fmt.Errorf("plugin %s does not run", e.Name)
	}
	return s.replace(ctx, e, s.open(e.Name, st.what, from, to), o)
}

// describe says in a word what an entry runs.
func describe(e *host.Entry) string {
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
func (s *Swapper) add(ctx context.Context, e *host.Entry, c *Change) error {
	on := *e
	on.Disabled = false
	set := s.current().With(&on)
	_, order := set.Get(e.Name)
	c.step(s, Starting)
	err := s.cfg.Control.Declare(control.Expect(&on, order), control.RulesOf(set))
	if err == nil {
		err = s.cfg.Host.Add(&on, order)
	}
	if err != nil {
		c.step(s, Failed, err.Error())
		return err
	}
	s.runs(set)
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

// remove ends a plugin, unless that would take all endpoints from services that stay, or all resources of a type from proxies; what it published goes.
func (s *Swapper) remove(e *host.Entry, c *Change, o Options) error {
	s.closeWindow(e.Name)
	d, err := s.cfg.Control.Removal(e.Name)
	if err != nil {
		c.step(s, Failed, err.Error())
		return err
	}
	c.found(s, d)
	switch {
	case o.DryRun:
		return nil
	case len(d.Emptied) > 0 && !o.Force:
		c.step(s, Refused, append(slices.Clone(d.Emptied), "it goes on; `coxswain plugins disable "+e.Name+" --force` ends it")...)
		return &refusedError{d.Emptied}
	}
	off := *e
	off.Disabled = true
	set := s.current().With(&off)
	s.cfg.Host.Remove(e.Name)
	if err := s.cfg.Control.Withdraw(e.Name, control.RulesOf(set)); err != nil {
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
