package operations

import (
	"context"
	"maps"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/members"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/control/internal/trial"
	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/view"
)

// Trial is a plugin beside the one that is served under its name. First it is the new one, which
// may take the place of the old; after Switch it is the old one, which is kept warm and may come
// back in the same way.
type Trial struct {
	c  *Core
	of *members.Candidate
}

// Try declares what may take the place of a plugin; the core takes its session as that of a
// candidate.
// One at a time for each name; while the last one that had the place is kept warm, another one can
// be compared, but not take it.
func (c *Core) Try(e state.Expected, rules state.Rules) (*Trial, error) {
	c.Lock()
	defer c.Unlock()
	t, err := c.Middle.Plugins.Trials.Try(e, rules)
	if err != nil {
		return nil, err
	}
	return &Trial{c, t}, nil
}

// End forgets the trial. Its session, if it still has one, must be ended by whoever began it.
func (t *Trial) End() {
	_ = t.c.Do(func() error { t.of.End(); return nil })
}

// Ready waits until the candidate has said all that it has to say at first.
func (t *Trial) Ready(ctx context.Context) error {
	return t.atBarrier(ctx, 0, func() error { return nil })
}

// Trouble is what the session that is not served last said of what failed; empty: nothing.
func (t *Trial) Trouble() string {
	return Locked(t.c, t.of.Trouble)
}

// Losses returns what proxies would lose by a switch of a plugin that publishes rows, and that is
// too much. Its new rows stand in for the old ones in a revision that nobody is shown.
func (t *Trial) Losses(ctx context.Context) ([]string, error) {
	var p *members.Probe
	var why []string
	var known bool
	if err := t.c.Do(func() error { p, why, known = t.c.Middle.Plugins.Removals.Probe(t.of); return nil }); err != nil || known {
		return why, err
	}
	err := t.c.Await(ctx, p.Done, func() { p.Stop(context.Cause(ctx)) })
	if members.Probed(err) {
		return p.Why, nil
	}
	return nil, err
}

// Compare returns what a switch would change.
func (t *Trial) Compare(ctx context.Context) (*guard.Difference, error) {
	var found *guard.Difference
	err := t.compared(ctx, func(d *guard.Difference, _ map[*view.Body]*view.Body) error {
		found = d
		return nil
	})
	return found, err
}

// Switch lets the one that is not served take the place of the other, in a revision of its own,
// unless decide says no to what would change. rules are those of the plugins as they are then.
func (t *Trial) Switch(ctx context.Context, rules state.Rules, decide func(*guard.Difference) error) error {
	return t.compared(ctx, func(d *guard.Difference, same map[*view.Body]*view.Body) error {
		if err := decide(d); err != nil {
			return err
		}
		return t.c.Middle.Plugins.Trials.Swap(t.of, rules, same)
	})
}

// compared calls act with the difference at a moment at which both have said the same revision.
// Bodies that must be decoded to be compared are compared before that moment, as far as they are
// known then.
func (t *Trial) compared(ctx context.Context, act func(*guard.Difference, map[*view.Body]*view.Body) error) error {
	const few, rounds = 100, 5
	if t.of.Known.Kind().Authenticates() {
		verdicts, losses := t.c.Calls.Differ(ctx, t.of.Known.Authenticator(), func() *state.Session { return t.of.Known.Session })
		t.c.Lock()
		t.of.Verdicts, t.of.Losses = verdicts, losses
		t.c.Unlock()
	}
	for round := 1; ; round++ {
		var open []guard.Pair
		err := t.atBarrier(ctx, t.c.HoldMax, func() error {
			w := t.of.Compare()
			if open = w.Open(); len(open) > few && round < rounds {
				return nil
			}
			open = nil
			return act(w.Decide())
		})
		if err != nil || len(open) == 0 {
			return err
		}
		known := trial.Look(open)
		t.c.Lock()
		maps.Copy(t.of.Memo, known)
		t.c.Unlock()
	}
}

// atBarrier calls act at such a moment. For patience no revision begins, so that the moment comes;
// without patience any revision will do.
func (t *Trial) atBarrier(ctx context.Context, patience time.Duration, act func() error) error {
	barriers := &t.c.Middle.Plugins.Trials.Barriers
	var b *trial.Barrier[members.Task]
	_ = t.c.Do(func() error {
		b = barriers.Add(members.Task{Of: t.of, Act: act, Done: make(chan error, 1)}, patience, t.c.Middle.State.Clock.Now())
		return nil
	})
	return t.c.Await(ctx, b.Of.Done, func() { barriers.Leave(b) })
}

// OnRefusals returns a channel that is closed when more proxies than limit have refused what they
// got since the switch.
func (t *Trial) OnRefusals(limit guard.Share) <-chan struct{} {
	t.c.Lock()
	defer t.c.Unlock()
	if t.of.Refusals.Limit(limit, t.c.Middle.Plugins.Trials.Electorate(t.of.Refusals.From())) {
		close(t.of.Over)
	}
	return t.of.Over
}

// Refusals returns what proxies refused since the switch, and why: one line for each proxy and
// type, some of many.
func (t *Trial) Refusals() (proxies int, lines []string) {
	t.c.Lock()
	defer t.c.Unlock()
	if t.of.Refusals == nil {
		return 0, nil
	}
	return t.of.Refusals.All()
}
