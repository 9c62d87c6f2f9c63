package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/state"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/guard"
	"github.com/coxswain-mesh/coxswain/core/patch"
	"github.com/coxswain-mesh/coxswain/core/stage"
	"github.com/coxswain-mesh/coxswain/core/trial"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Trial is a plugin beside the one that is served under its name. First it is the new one, which may take the place of the old; after Switch it
// is the old one, which is kept warm and may come back in the same way.
type Trial struct {
	c  *Control
	of *candidate
}

// candidate is what is known of a trial.
type candidate struct {
	ts *trials
	// key is its own among all trials.
	key string
	// known is the one that is not served; without a session it has not joined, or has ended.
	known *state.Plugin
	memo  trial.Memo
	// verdicts are those on live connections that differ, losses those of them that would be refused.
	verdicts, losses []string
	// refusals are counted after a switch; over is closed when they are too many.
	refusals *trial.Refusals[*state.Connection]
	over     chan struct{}
}

// ErrEnded is why a trial cannot go on: its session ended.
var ErrEnded = errors.New("it ended")

// Try declares what may take the place of a plugin; Serve takes its session as that of a candidate. One at a time for each name; while the last one that had the
// place is kept warm, another one can be compared, but not take it.
func (c *Control) Try(e state.Expected, rules state.Rules) (*Trial, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, err := c.plugins.Trials.try(e, rules)
	if err != nil {
		return nil, err
	}
	return &Trial{c, t}, nil
}

// try declares what may take the place of a plugin.
func (ts *trials) try(e state.Expected, rules state.Rules) (*candidate, error) {
	k, key := ts.roster.Plugins[e.Name], e.Name
	if warm := ts.all[key]; warm != nil && warm.refusals != nil {
		key += " beside"
	}
	switch {
	case !ts.course.Started:
		return nil, errors.New("the first revision is not served yet")
	case k == nil:
		return nil, fmt.Errorf("plugin %s is not declared", e.Name)
	case ts.all[key] != nil:
		return nil, fmt.Errorf("plugin %s is being swapped already", e.Name)
	case k.Kind() != e.Kind:
		return nil, fmt.Errorf("plugin %s would become one of another kind; declare it under another name", e.Name)
	}
	t := &candidate{ts: ts, key: key, known: state.NewPlugin(e, k.Shard, ts.clock.Now()), memo: trial.Memo{}}
	ts.all[key], ts.roster.Rivals[t.known] = t, &state.Rival{Rules: rules}
	ts.roster.Rouse(e.Name)
	return t, nil
}

// End forgets the trial. Its session, if it still has one, must be ended by whoever began it.
func (t *Trial) End() {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	t.of.end()
	t.c.schedule(t.c.state.Clock.Now())
}

func (t *candidate) end() {
	delete(t.ts.all, t.key)
	delete(t.ts.roster.Rivals, t.known)
	if t.known.Session != nil {
		t.known.Session.Cancel(errors.New("it is not needed any more"))
	}
}

// admitRival takes a candidate's session in: it is fed like the served one, and what it says goes
// into its shadow.
func (mb *members) admitRival(name string, ready *pb.Ready, open func(*state.Plugin) *state.Session) (*state.Session, error) {
	k := mb.roster.Awaited(name)
	if k == nil {
		return nil, fmt.Errorf("plugin %s is not being swapped", name)
	}
	if _, err := stage.Levels(mb.roster.StagePlugins(name, ready)); err != nil {
		return nil, err
	}
	k.Ready, k.Away = ready, time.Time{}
	s := open(k)
	s.Shadow = state.NewShadow(environment.Tables{})
	k.Session = s
	if s.Generates() {
		s.Maker.Views = state.NewViews(ready)
		for _, conn := range mb.conns.Sorted() {
			mb.placer.AttachShadow(s, conn)
		}
	}
	if s.Kind() == pb.KindPatch {
		k.Patcher, mb.roster.Rivals[k].Made = mb.patches.NewPatcher(k), patch.NewMade()
		k.Patcher.Learn(mb.roster.Patcher(s.Name()))
		k.Patcher.Begin()
	}
	return s, nil
}

// dismissRival takes a session out that was not served.
func (mb *members) dismissRival(s *state.Session) {
	s.Plugin.Away = mb.clock.Now()
	mb.conns.Left.Forget(s)
	if s.Plugin.Patcher != nil {
		s.Plugin.Patcher.Left()
	}
	s.Plugin.Session = nil
}

// Ready waits until the candidate has said all that it has to say at first.
func (t *Trial) Ready(ctx context.Context) error { return t.meet(ctx, 0, func() error { return nil }) }

// Trouble is what the session that is not served last said of what failed; empty: nothing.
func (t *Trial) Trouble() string {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	return t.of.trouble()
}

func (t *candidate) trouble() string {
	var said []string
	for _, f := range t.known.Faults {
		said = append(said, budget.Line(f.What+": "+f.Reason, 300))
		if len(said) == 3 {
			break
		}
	}
	if t.known.Session != nil && t.known.Session.Lines.Complaint != "" {
		said = append(said, t.known.Session.Lines.Complaint)
	}
	return strings.Join(said, "; ")
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

// Switch lets the one that is not served take the place of the other, in a revision of its own, unless decide says no to what would change. rules
// are those of the plugins as they are then.
func (t *Trial) Switch(ctx context.Context, rules state.Rules, decide func(*guard.Difference) error) error {
	return t.compared(ctx, func(d *guard.Difference, same map[*view.Body]*view.Body) error {
		if err := decide(d); err != nil {
			return err
		}
		return t.c.plugins.Trials.swap(t.of, rules, same)
	})
}

// compared calls act with the difference at a moment at which both have said the same revision. Bodies that must be decoded to be compared are
// compared before that moment, as far as they are known then.
func (t *Trial) compared(ctx context.Context, act func(*guard.Difference, map[*view.Body]*view.Body) error) error {
	const few, rounds = 100, 5
	t.judge(ctx)
	for round := 1; ; round++ {
		var open []guard.Pair
		err := t.meet(ctx, t.c.cfg.HoldMax, func() error {
			w := t.of.compare()
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
		t.c.mu.Lock()
		maps.Copy(t.of.memo, known)
		t.c.mu.Unlock()
	}
}

// meeting is something to do when a trial and the served plugin have said the same revision.
type meeting struct {
	t    *candidate
	act  func() error
	done chan error
}

// meet calls act at such a moment. For patience no revision begins, so that the moment comes; without patience any revision will do.
func (t *Trial) meet(ctx context.Context, patience time.Duration, act func() error) error {
	c := t.c
	c.mu.Lock()
	m := c.plugins.Trials.meetings.Call(meeting{t: t.of, act: act, done: make(chan error, 1)}, patience, c.state.Clock.Now())
	c.schedule(c.state.Clock.Now())
	c.mu.Unlock()
	select {
	case err := <-m.Of.done:
		return err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.plugins.Trials.meetings.Leave(m)
	c.schedule(c.state.Clock.Now())
	select {
	case err := <-m.Of.done:
		return err
	default:
		return context.Cause(ctx)
	}
}

// meet holds the meetings whose moment has come. It reports whether no revision may begin.
func (ts *trials) meets(now time.Time, at func(time.Time)) (hold bool) {
	for m, err := range ts.meetings.Over(now, at, func(m meeting, rest bool) (bool, error) { return m.t.upToDate(rest) }) {
		if err == nil {
			err = m.Of.act()
		}
		m.Of.done <- err
	}
	return ts.meetings.Hold()
}

// upToDate reports whether the trial has said all about some revision, or, rest, about what is in
// the tables while none is in the making. The error says that it never will.
func (t *candidate) upToDate(rest bool) (bool, error) {
	ts := t.ts
	switch {
	case ts.course.Closed:
		return false, errors.New("the control plane is stopping")
	case ts.all[t.key] != t || t.known.Session == nil && t.known.Ready != nil:
		return false, ErrEnded
	case t.known.Session == nil:
		return false, nil
	case rest:
		return ts.course.Flight == nil && t.rested(), nil
	}
	return t.said(), nil
}
