package swap

import (
	"context"
	"errors"
	"fmt"
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
	off := false
	o.asked = "enable"
	return s.command(ctx, name, doAdd, Request{Disabled: &off}, o)
}

// command does what a request wants and writes it to the file. The change is nil if nothing was
// begun.
func (s *Swapper) command(ctx context.Context, name, what string, r Request, o Options) (*Change, error) {
	release, err := s.follower.interrupt(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
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
	}
	err = s.changer.do(ctx, step{what, e}, o)
	c := s.history.last(name)
	if err == nil && writes {
		s.write(c, text)
	}
	return c.now(), err
}

// write puts a text into the file, in which what runs now stands.
func (s *Swapper) write(c *attempt, text []byte) {
	if s.editor.write(c, text) {
		s.pasts.written(c, text)
	}
}

// errNoFile is that there is nothing to write to.
var errNoFile = errors.New("the plugin set is built in and can't be written to; give --ephemeral, or start with --plugins FILE")
