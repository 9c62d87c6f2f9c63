package swap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// Swap lets a new instance take the place of a plugin, with what the request changes of its entry.
func (s *Swapper) Swap(ctx context.Context, name string, r Request, o Options) (*Change, error) {
	o.anew = true
	return s.command(ctx, name, doSwap, r, o)
}

// Restart starts a plugin anew, as a swap with its own entry.
func (s *Swapper) Restart(ctx context.Context, name string, o Options) (*Change, error) {
	return s.command(ctx, name, doRestart, Request{}, o)
}

// Disable ends a plugin; what it published goes. Enable starts it again.
func (s *Swapper) Disable(ctx context.Context, name string, o Options) (*Change, error) {
	off := true
	o.asked = "disable"
	return s.command(ctx, name, doRemove, Request{Disabled: &off}, o)
}

// Enable starts a plugin that was disabled.
func (s *Swapper) Enable(ctx context.Context, name string, o Options) (*Change, error) {
	if o.DryRun {
		return nil, errors.New("there is no dry run of enable: a plugin that does not run has nothing to be compared with")
	}
	off := false
	o.asked = "enable"
	return s.command(ctx, name, doAdd, Request{Disabled: &off}, o)
}

// command does what a request wants and writes it to the file. The change is nil if nothing was
// begun.
func (s *Swapper) command(ctx context.Context, name, what string, r Request, o Options) (_ *Change, err error) {
	if o.DryRun {
		o.run = s.dryRuns.begin(ctx, commandOf(cmp.Or(o.asked, what), name, r, o))
		defer func() { o.run.end(err) }()
	}
	release, err := s.follower.interrupt(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	o.run.proceeds(1)
	if held := s.desired.held[name]; what == doRemove && held != nil {
		err := s.follower.letGo(ctx, held, o)
		return s.history.last(name).now(), err
	}
	writes := !r.empty() && !o.DryRun && !o.Ephemeral
	if writes && s.file.path == "" {
		return nil, errNoFile
	}
	e, text, err := s.editor.wanted(ctx, name, what, r)
	if err != nil {
		return nil, err
	}
	now, _ := s.running.now().Get(name)
	runs := now != nil && now.Runs()
	switch {
	case what == doAdd && runs:
		return nil, fmt.Errorf("plugin %s runs already", name)
	case what != doAdd && !runs:
		return nil, fmt.Errorf("plugin %s does not run; coxswain plugins enable %s", name, name)
	case what == doRemove:
		e = now
	case o.Declared:
		if e, err = s.known(what, e); err != nil {
			return nil, err
		}
	}
	err = s.changer.do(ctx, step{what, e}, o)
	c := s.history.last(name)
	if err == nil && writes {
		s.write(c, text)
	}
	return c.now(), err
}

// known returns an entry whose artifact runs by a digest that plugins.yaml has or, for a restart
// and a rollback, by that which runs or ran.
func (s *Swapper) known(what string, e *manifest.Entry) (*manifest.Entry, error) {
	if e.Plugin == "" || e.Plugin.Digest() != "" {
		return e, nil
	}
	again := what == doRestart || what == doRollback
	if again && e.Artifact == nil {
		e = s.cfg.Host.Fetched(e)
	}
	if again && e.Artifact != nil {
		return e, nil
	}
	if what == doAdd {
		what = "enable"
	}
	return nil, fmt.Errorf("plugin %s runs %s, and plugins.yaml does not say which digest that is: write it there (coxswain plugins pin FILE %[1]s), "+
		"or have its registry asked by the command (coxswain plugins %[3]s %[1]s)", e.Name, e.Plugin, what)
}

// commandOf is a dry run as the command that it is. Flags have no values: these may have something
// secret in them.
func commandOf(what, name string, r Request, o Options) string {
	words := []string{"coxswain plugins", what, name}
	for _, flag := range []struct {
		name string
		set  bool
	}{
		{"--process", len(r.Process) > 0}, {"--wasm", r.Wasm != ""}, {"--builtin", r.Builtin != ""}, {"--plugin", r.Plugin != ""},
		{"--config", r.Config != ""},
	} {
		if flag.set {
			words = append(words, flag.name, "…")
		}
	}
	words = append(words, "--dry-run")
	if o.Force {
		words = append(words, "--force")
	}
	return strings.Join(words, " ")
}

// write puts a text into the file, in which what runs now stands.
func (s *Swapper) write(c *attempt, text []byte) {
	if s.editor.write(c, text) {
		s.pasts.written(c, text)
	}
}

// errNoFile is that there is nothing to write to.
var errNoFile = errors.New("the plugin set is built in and can't be written to; give --ephemeral, or start with --plugins FILE")
