package swap

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/state"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// ErrRefused is that a guard refused a change.
var ErrRefused = errors.New("a guard refused it")

// replace lets an entry take the place of the plugin of its name. The turn is held.
func (s *Swapper) replace(ctx context.Context, e *manifest.Entry, c *Change, o Options) error {
	defer c.explain(s)
	if o.DryRun {
		var done func()
		ctx, done = s.giveWay(ctx, e.Name)
		defer done()
	} else {
		s.closeWindow(e.Name)
	}
	set := s.current()
	last, _ := set.Get(e.Name)
	next := set.With(e)
	if e.Kind.Proto() == pb.KindController {
		return s.replaceInTurn(ctx, last, e, c, o)
	}
	free, known := s.cfg.Free()
	if why := crowded(e.Name, s.cfg.Host.Status(), free); why != "" && known && !o.Force {
		c.step(s, Refused, why)
		return ErrRefused
	}
	st, err := s.start(ctx, e, next, c)
	if err != nil {
		c.step(s, Failed, err.Error())
		return err
	}
	c.step(s, Comparing)
	err = st.wait(ctx, func(ctx context.Context) error {
		return st.trial.Switch(ctx, state.RulesOf(next), func(d *guard.Difference) error {
			c.found(s, d)
			why := guardOf(e).Check(d)
			return judge(why, o)
		})
	})
	if err != nil {
		st.end()
		return s.stopped(c, err)
	}
	failed, err := st.process.Exchange()
	if err != nil {
		s.cfg.Log.Error("a plugin's process could not take its place", "plugin", e.Name, "error", err)
	}
	s.runs(next)
	s.replaced(c, last, e)
	s.watchOver(st, last, e, c, failed)
	return nil
}

// judge says whether a switch may go on, of which the guard says why it should not.
func judge(why []string, o Options) error {
	switch {
	case o.DryRun:
		return &comparedError{why}
	case len(why) > 0 && !o.Force:
		return &refusedError{why}
	}
	return nil
}

// comparedError ends a dry run, with what the guard says.
type comparedError struct{ why []string }

func (e *comparedError) Error() string { return "only compared" }

type refusedError struct{ why []string }

func (e *refusedError) Error() string { return strings.Join(e.why, "; ") }

func (e *refusedError) Unwrap() error { return ErrRefused }

// stopped notes why there was no switch; nil if none was wanted.
func (s *Swapper) stopped(c *Change, err error) error {
	var refused *refusedError
	var compared *comparedError
	switch {
	case errors.As(err, &compared):
		c.compared(s, compared.why)
		return nil
	case errors.As(err, &refused):
		c.step(s, Refused, refused.why...)
	default:
		c.step(s, Failed, err.Error())
	}
	return err
}

// guardOf is an entry's guard, or the default.
func guardOf(e *manifest.Entry) guard.Guard {
	g := guard.Default()
	if e.Guard != nil && e.Guard.MaxRemoved != (manifest.Share{}) {
		g.MaxRemoved = guard.Share(e.Guard.MaxRemoved)
	}
	return g
}

// crowded says why two instances of a plugin at once would take more memory than is free.
func crowded(name string, running []host.Status, free uint64) string {
	for _, st := range running {
		if st.Entry.Name == name && st.Memory > free {
			return fmt.Sprintf("memory for both instances would exceed what there is: the old one has %.0f MB, %.0f MB are free", float64(st.Memory)/1e6, float64(free)/1e6)
		}
	}
	return ""
}

// replaceInTurn ends the old one before the new one starts: there must never be two. If the new one
// does not start, the old one is started again.
func (s *Swapper) replaceInTurn(ctx context.Context, last, e *manifest.Entry, c *Change, o Options) error {
	if o.DryRun {
		c.step(s, Failed, "a controller never runs twice, so that there is nothing to compare")
		return errors.New("a controller can't be compared")
	}
	c.step(s, Starting)
	set := s.current().With(e)
	err := s.turnOver(ctx, e, set)
	if err == nil {
		s.runs(set)
		s.replaced(c, last, e)
		c.step(s, Switched)
		c.step(s, Kept)
		return nil
	}
	c.step(s, Failed, err.Error())
	if last != nil {
		if again := s.turnOver(ctx, last, s.current()); again != nil {
			return errors.Join(err, fmt.Errorf("and the old one: %w", again))
		}
	}
	return err
}

func (s *Swapper) turnOver(ctx context.Context, e *manifest.Entry, set *manifest.Set) error {
	s.cfg.Host.Remove(e.Name)
	_, order := set.Get(e.Name)
	if err := s.cfg.Control.Redeclare(state.Expect(e, order), state.RulesOf(set)); err != nil {
		return err
	}
	if err := s.cfg.Host.Add(e, order); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience(e))
	defer cancel()
	return s.cfg.Host.Up(ctx, e.Name)
}

// rollbackOf is an entry's rollback, or the default.
func rollbackOf(e *manifest.Entry) (limit guard.Share, window time.Duration) {
	limit, window = guard.Share{Percent: 5}, 5*time.Minute
	if r := e.Rollback; r != nil {
		if r.NackedProxies != (manifest.Share{}) {
			limit = guard.Share(r.NackedProxies)
		}
		if r.Window > 0 {
			window = r.Window
		}
	}
	return limit, window
}
