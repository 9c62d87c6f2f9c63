package members

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/control/internal/pipeline"
	"github.com/coxswain-mesh/coxswain/core/control/internal/serving"
	"github.com/coxswain-mesh/coxswain/core/control/internal/stage"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/control/internal/trial"
	"github.com/coxswain-mesh/coxswain/core/view"
)

// Trials are plugins that may take another's place, or were replaced.
type Trials struct {
	state    *state.State
	losses   *serving.Losses
	streams  *serving.Streams
	screen   *serving.Screen
	intake   *pipeline.Intake
	pipeline *pipeline.Pipeline
	patches  *serving.Patches
	pins     *serving.Pins
	// electorate is who has a vote, as found from electorateOf.
	electorate   trial.Electorate
	electorateOf electorateOf
	// All holds the trials by their key.
	All map[string]*Candidate
	// Barriers hold what waits until a trial and the served plugin have said the same revision.
	Barriers trial.Barriers[Task]
}

// Candidate is what is known of a trial.
type Candidate struct {
	ts *Trials
	// key is its own among all trials.
	key string
	// Known is the one that is not served; without a session it has not joined, or has ended.
	Known *state.Plugin
	Memo  trial.Memo
	// Verdicts are those on live connections that differ, losses those of them that would be
	// refused.
	Verdicts, Losses []string
	// Refusals are counted after a switch; Over is closed when they are too many.
	Refusals *trial.Refusals[*state.Connection]
	Over     chan struct{}
}

// ErrEnded is why a trial cannot go on: its session ended.
var ErrEnded = errors.New("it ended")

// Try declares what may take the place of a plugin.
func (ts *Trials) Try(e state.Expected, rules state.Rules) (*Candidate, error) {
	k, key := ts.state.Roster.Plugins[e.Name], e.Name
	if warm := ts.All[key]; warm != nil && warm.Refusals != nil {
		key += " beside"
	}
	switch {
	case !ts.state.Course.Started:
		return nil, errors.New("the first revision is not served yet")
	case k == nil:
		return nil, fmt.Errorf("plugin %s is not declared", e.Name)
	case ts.All[key] != nil:
		return nil, fmt.Errorf("plugin %s is being swapped already", e.Name)
	case k.Kind() != e.Kind:
		return nil, fmt.Errorf("plugin %s would become one of another kind; declare it under another name", e.Name)
	}
	t := &Candidate{ts: ts, key: key, Known: state.NewPlugin(e, k.Shard, ts.state.Clock.Now()), Memo: trial.Memo{}}
	ts.All[key] = t
	ts.state.Roster.Compete(t.Known, rules)
	ts.state.Roster.Rouse(e.Name)
	return t, nil
}

// End forgets the trial, and ends the session that is not served.
func (t *Candidate) End() {
	delete(t.ts.All, t.key)
	t.ts.state.Roster.GiveUp(t.Known)
	if t.Known.Session != nil {
		t.Known.Session.Cancel(errors.New("it is not needed any more"))
	}
}

// Trouble is what the session that is not served last said of what failed; empty: nothing.
func (t *Candidate) Trouble() string {
	var said []string
	for _, f := range t.Known.Faults {
		said = append(said, budget.Line(f.What+": "+f.Reason, 300))
		if len(said) == 3 {
			break
		}
	}
	if t.Known.Session != nil && t.Known.Session.Lines.Complaint != "" {
		said = append(said, t.Known.Session.Lines.Complaint)
	}
	return strings.Join(said, "; ")
}

// Task is something to do when a trial and the served plugin have said the same revision.
type Task struct {
	Of   *Candidate
	Act  func() error
	Done chan error
}

// PassBarriers does the tasks whose moment has come. It reports whether no revision may begin.
func (ts *Trials) PassBarriers(now time.Time, at func(time.Time)) (hold bool) {
	for m, err := range ts.Barriers.Passed(now, at, func(m Task, rest bool) (bool, error) { return m.Of.upToDate(rest) }) {
		if err == nil {
			err = m.Of.Act()
		}
		m.Of.Done <- err
	}
	return ts.Barriers.Hold()
}

// upToDate reports whether the trial has said all about some revision, or, rest, about what is in
// the tables while none is in the making. The error says that it never will.
func (t *Candidate) upToDate(rest bool) (bool, error) {
	ts := t.ts
	switch {
	case ts.state.Course.Closed:
		return false, errors.New("the control plane is stopping")
	case ts.All[t.key] != t || t.Known.Session == nil && t.Known.Ready != nil:
		return false, ErrEnded
	case t.Known.Session == nil:
		return false, nil
	case rest:
		return ts.state.Course.Flight == nil && t.rested(), nil
	}
	return t.said(), nil
}

// rested reports whether the session has said all about what is in the tables.
func (t *Candidate) rested() bool {
	s := t.Known.Session
	if s.Lacks() || !s.State.Busy.IsZero() || s.Maker.Asked.Len() > 0 || !s.Maker.Turns.Idle() {
		return false
	}
	return (!state.PublishesRows(s.Plugin.Ready) || s.Source.Synced) && t.hasComposed()
}

// said reports whether the session has said all about some revision.
func (t *Candidate) said() bool {
	switch s := t.Known.Session; {
	case s.Generates() || s.Plugin.Ready.Derives:
		return s.State.Done > 0 && s.Maker.Asked.Len() == 0 && s.Maker.Turns.Idle()
	case state.PublishesRows(s.Plugin.Ready):
		return s.Source.Synced
	}
	return t.hasComposed()
}

// Swap lets the trial's session be served in place of the other, which becomes the trial's. It is a
// revision of its own.
func (ts *Trials) Swap(t *Candidate, rules state.Rules, same map[*view.Body]*view.Body) error {
	if t.key != t.Known.Name() {
		return fmt.Errorf("plugin %s was swapped a moment ago, and what had its place is kept warm", t.Known.Name())
	}
	now := ts.state.Clock.Now()
	name := t.Known.Name()
	last, next := ts.state.Roster.Session(name), t.Known.Session
	shadow := next.Shadow
	before := ts.state.Env.Pending.Shard(t.Known.Shard)

	t.Known = ts.state.Roster.Exchange(t.Known, rules, before)
	ts.state.Course.Unforce(name)
	k := ts.state.Roster.Plugins[name]
	k.Shard.Derived = k.Ready.Derives
	if levels, err := stage.Levels(ts.state.Roster.StagePlugins(name, k.Ready)); err == nil { // it was checked when the session joined
		ts.state.Roster.Rank(levels)
	}
	ts.state.Course.Moved.Merge(ts.state.Env.Precedence.Prioritize(k.Shard, k.Expected.Priority))
	if k.Succeeds(next); !k.Absence.Over(now) {
		ts.state.Course.Moved.Merge(ts.state.Env.Precedence.SetAside(k.Shard, false))
	}
	ts.state.Env.Held.Drop(k.Shard)
	ts.losses.Holds.Drop(name)
	ts.losses.Holds.ApproveNext(false) // it was judged before
	ts.state.Env.Pending.Replace(k.Shard, shadow.Rows())
	switch {
	case k.Kind().Generates():
		next.Maker.Views.Adopt(same)
		next.Maker.Views.Publish()
		ts.streams.Exchange(name, last, shadow)
	case k.Kind().Patches():
		k.Patcher.Succeeds(t.Known.Patcher, same)
		ts.state.Roster.Rivals[t.Known].Begin()
		ts.screen.SpoilAll()
	}
	t.Memo = trial.Memo{}
	t.countRefusals()
	ts.pipeline.Begin("swap", ts.state.Env.Pending.Of(k.Shard), true, now)
	ts.state.Roster.Serving(name)
	ts.intake.Touched(name, now)
	return nil
}
