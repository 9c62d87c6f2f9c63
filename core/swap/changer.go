package swap

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/control"
	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// changer carries out changes, one at a time.
type changer struct {
	control *control.Control
	host    *host.Host
	log     *slog.Logger
	// free returns how much memory may still be used.
	free    func() (bytes uint64, known bool)
	running *running
	history *history
	pasts   *pasts
	windows *windows
}

// do does one step. The turn is held.
func (ch *changer) do(ctx context.Context, st step, o Options) error {
	e := st.entry
	last, _ := ch.running.now().Get(e.Name)
	switch st.what {
	case doAdd:
		return ch.add(ctx, e, ch.history.open(ctx, st.what, last, e, o))
	case doRemove:
		return ch.remove(ctx, e, ch.history.open(ctx, st.what, last, e, o), o)
	}
	if last == nil || !last.Runs() {
		return fmt.Errorf("plugin %s does not run", e.Name)
	}
	return ch.replace(ctx, e, ch.history.open(ctx, st.what, last, e, o), o)
}

// start runs the entry beside the plugin of its name until both have said the same revision.
func (ch *changer) start(ctx context.Context, e *manifest.Entry, set *manifest.Set, c *attempt) (*standing, error) {
	_, order := set.Get(e.Name)
	trial, err := ch.control.Operator().Try(control.Expect(e, order), control.RulesOf(set))
	if err != nil {
		return nil, err
	}
	c.step(Starting)
	program, _ := stampOf(set, e)
	process, err := ch.host.Standby(e, order)
	if err != nil {
		trial.End()
		return nil, err
	}
	st := &standing{trial: trial, process: process, program: program}
	ctx, cancel := context.WithTimeoutCause(ctx, patience(e), fmt.Errorf("it did not get ready within %v", patience(e)))
	defer cancel()
	c.step(Syncing)
	if err := st.wait(ctx, trial.Ready); err != nil {
		if why := trial.Trouble(); why != "" && ctx.Err() != nil {
			err = fmt.Errorf("%w; it said last: %s", err, why)
		}
		st.end()
		return nil, err
	}
	process.Synced()
	return st, nil
}

// replace lets an entry take the place of the plugin of its name. The turn is held.
func (ch *changer) replace(ctx context.Context, e *manifest.Entry, c *attempt, o Options) error {
	defer c.explain()
	set := ch.running.now()
	last, _ := set.Get(e.Name)
	if e.Plugin != "" || last.Plugin != "" {
		var err error
		if last, e, err = ch.fetch(ctx, last, e, c, o); err != nil {
			return err
		}
	}
	if o.DryRun {
		var done func()
		ctx, done = ch.windows.giveWay(ctx, e.Name)
		defer done()
	} else {
		ch.windows.close(e.Name)
	}
	next := set.With(e)
	if e.Kind.Proto().Acts() {
		return ch.replaceInTurn(ctx, last, e, c, o)
	}
	free, known := ch.free()
	if why := crowded(e.Name, ch.host.Status(), free); why != "" && known && !o.Force {
		c.step(Refused, why)
		return ErrRefused
	}
	st, err := ch.start(ctx, e, next, c)
	if err != nil {
		c.step(Failed, err.Error())
		return err
	}
	c.step(Comparing)
	var lost []string
	if !o.Force {
		if err := st.wait(ctx, func(ctx context.Context) (err error) { lost, err = st.trial.Losses(ctx); return err }); err != nil {
			st.end()
			return c.stopped(err)
		}
	}
	err = st.wait(ctx, func(ctx context.Context) error {
		return st.trial.Switch(ctx, control.RulesOf(next), func(d *guard.Difference) error {
			d.Lost = append(d.Lost, lost...)
			c.found(d)
			why := guardOf(e).Check(d)
			return judge(why, o)
		})
	})
	if err != nil {
		st.end()
		return c.stopped(err)
	}
	failed, err := st.process.Exchange()
	if err != nil {
		ch.log.Error("a plugin's process could not take its place", "plugin", e.Name, "error", err)
	}
	ch.running.becomes(next)
	ch.pasts.replaced(c, last, e)
	ch.windows.open(st, last, e, c, failed)
	return nil
}

// fetch returns what runs and what is to run with what their artifacts are, before anything else is
// done: where one can't be had, nothing was touched.
func (ch *changer) fetch(ctx context.Context, last, e *manifest.Entry, c *attempt, o Options) (was, is *manifest.Entry, err error) {
	is, err = ch.host.Fetch(ctx, e, o.anew)
	if err != nil {
		c.step(Failed, err.Error())
		return nil, nil, err
	}
	was = ch.host.Fetched(last)
	c.between(was, is)
	return was, is, nil
}

// replaceInTurn ends the old one before the new one starts: there must never be two. If the new one
// does not start, the old one is started again.
func (ch *changer) replaceInTurn(ctx context.Context, last, e *manifest.Entry, c *attempt, o Options) error {
	if o.DryRun {
		c.step(Failed, "a controller never runs twice, so that there is nothing to compare")
		return errors.New("a controller can't be compared")
	}
	c.step(Starting)
	set := ch.running.now().With(e)
	err := ch.turnOver(ctx, e, set)
	if err == nil {
		ch.running.becomes(set)
		ch.pasts.replaced(c, last, e)
		c.step(Switched)
		c.step(Kept)
		return nil
	}
	c.step(Failed, err.Error())
	if last != nil {
		if again := ch.turnOver(ctx, last, ch.running.now()); again != nil {
			return errors.Join(err, fmt.Errorf("and the old one: %w", again))
		}
	}
	return err
}

func (ch *changer) turnOver(ctx context.Context, e *manifest.Entry, set *manifest.Set) error {
	ch.host.Remove(e.Name)
	_, order := set.Get(e.Name)
	if err := ch.control.Redeclare(control.Expect(e, order), control.RulesOf(set)); err != nil {
		return err
	}
	if err := ch.host.Add(e, order); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience(e))
	defer cancel()
	return ch.host.Up(ctx, e.Name)
}

// add starts a plugin that did not run.
func (ch *changer) add(ctx context.Context, e *manifest.Entry, c *attempt) error {
	on := *e
	on.Disabled = false
	set := ch.running.now().With(&on)
	_, order := set.Get(e.Name)
	c.step(Starting)
	err := ch.control.Declare(control.Expect(&on, order), control.RulesOf(set))
	if program, ok := stampOf(set, &on); ok {
		ch.windows.starts(e.Name, program)
	}
	if err == nil {
		err = ch.host.Add(&on, order)
	}
	if err != nil {
		c.step(Failed, err.Error())
		return err
	}
	ch.running.becomes(set)
	ch.pasts.forget(&on)
	ctx, cancel := context.WithTimeout(ctx, patience(e))
	defer cancel()
	if err := ch.host.Up(ctx, e.Name); err != nil {
		c.step(Failed, err.Error()+" (it is tried again and again)")
		return err
	}
	c.step(Switched)
	c.step(Kept)
	return nil
}

// remove ends a plugin, unless proxies would lose something by it, or it is one of several that
// plugins.yaml has lost.
func (ch *changer) remove(ctx context.Context, e *manifest.Entry, c *attempt, o Options) error {
	if o.DryRun {
		var done func()
		ctx, done = ch.windows.giveWay(ctx, e.Name)
		defer done()
	} else {
		ch.windows.close(e.Name)
	}
	off := *e
	off.Disabled = true
	set := ch.running.now().With(&off)
	applies := e.LossApplies()
	err := ch.control.Removal(ctx, e.Name, control.RulesOf(set), func(d *guard.Difference, why []string) error {
		c.found(d)
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
		c.step(Refused, append(slices.Clone(refused.why), "it goes on; `coxswain plugins disable "+e.Name+" --force` ends it")...)
		return err
	case err != nil:
		return c.stopped(err)
	}
	ch.host.Remove(e.Name)
	ch.host.Unlisten(e.Name)
	if err := ch.control.Withdraw(e.Name, control.RulesOf(set), o.Force || applies); err != nil {
		c.step(Failed, err.Error())
		return err
	}
	ch.running.becomes(set)
	c.step(Switched)
	c.step(Kept)
	return nil
}

// arrange gives all plugins their places.
func (ch *changer) arrange(set *manifest.Set) {
	ch.running.becomes(set)
	ch.control.Reorder(places(set), control.RulesOf(set))
}
