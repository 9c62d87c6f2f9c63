package members

import (
	"fmt"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/pipeline"
	"github.com/coxswain-mesh/coxswain/core/control/internal/serving"
	"github.com/coxswain-mesh/coxswain/core/control/internal/stage"
	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/host"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Members takes sessions in and out.
type Members struct {
	state    *state.State
	patches  *serving.Patches
	placer   *serving.Placer
	feeder   *pipeline.Feeder
	sleepers *pipeline.Sleepers
	intake   *pipeline.Intake
	pipeline *pipeline.Pipeline
	results  *pipeline.Results
	removals *Removals
}

// Declare adds a plugin.
func (mb *Members) Declare(k *state.Plugin) {
	mb.state.Roster.Declare(k)
	if k.Kind().Patches() {
		k.PatchesBy(mb.patches.NewPatcher(k))
	}
}

// Learn takes a plugin in that starts on demand, of which another one of its kind told what it
// says.
func (mb *Members) Learn(name string, ready *pb.Ready) error {
	k, err := mb.comes(name, ready)
	if err != nil {
		return err
	}
	k.Doze(true)
	if mb.sleepers.Wanted(k.Name()) {
		mb.state.Roster.Rouse(k.Name())
	}
	return nil
}

// comes learns what a plugin says of itself that may have a session now.
func (mb *Members) comes(name string, ready *pb.Ready) (*state.Plugin, error) {
	k := mb.state.Roster.Plugins[name]
	if k == nil {
		return nil, fmt.Errorf("plugin %s is not declared", name)
	}
	if mb.removals.departs(k.Name()) {
		return nil, fmt.Errorf("plugin %s is being removed", k.Name())
	}
	if mb.state.Roster.Session(k.Name()) != nil {
		return nil, fmt.Errorf("plugin %s has a live session already", k.Name())
	}
	levels, err := stage.Levels(mb.state.Roster.StagePlugins(k.Name(), ready))
	if err != nil {
		return nil, err
	}
	if k.Expected.OnDemand {
		if err := state.CanSleep(k.Kind(), ready); err != nil {
			return nil, err
		}
	}
	k.Says(ready)
	k.Shard.Derived = ready.Derives
	if p := mb.state.Roster.Patcher(k.Name()); p != nil {
		p.Describes(k.Ready)
	}
	mb.state.Roster.Rank(levels)
	mb.state.Roster.WarnOfWriters(k)
	if k.Kind().Generates() {
		for _, conn := range mb.state.Connections.Sorted() {
			mb.state.Roster.Assign(conn)
		}
	}
	return k, nil
}

// Admit takes the session of a plugin in that open makes; host.ErrAsleep: nobody needs it now.
func (mb *Members) Admit(name string, ready *pb.Ready, open func(*state.Plugin) *state.Session) (*state.Session, error) {
	k, err := mb.comes(name, ready)
	if err != nil {
		return nil, err
	}
	k.Doze(k.Expected.OnDemand && !mb.sleepers.Wanted(k.Name()))
	if k.Sleep.Asleep {
		if f := mb.state.Course.Flight; f != nil {
			f.Leave(name)
			mb.pipeline.Advance(mb.state.Clock.Now())
		}
		return nil, host.ErrAsleep
	}
	s := open(k)
	k.Joins(s)
	if s.Generates() {
		s.Maker.Begin(ready)
		for _, conn := range mb.state.Connections.Sorted() {
			conn.Forget(k.Name())
			mb.placer.Introduce(conn, k.Name(), false)
		}
	}
	switch {
	case s.Generates() || ready.Derives:
		mb.state.Course.Force(k.Name())
	case s.Feed.ReadsAny() && !mb.feeder.Waits(s):
		mb.feeder.SendState(s, mb.state.Env.Committed.Number())
	}
	mb.pipeline.Resume(s)
	if s.Kind().Patches() {
		mb.results.PatcherIsBack(mb.state.Roster.Patcher(k.Name()))
	}
	return s, nil
}

// Dismiss takes a session out.
func (mb *Members) Dismiss(s *state.Session) {
	if s.Shadow != nil {
		mb.dismissRival(s)
		return
	}
	s.Plugin.Leaves(mb.state.Clock.Now())
	if p := mb.state.Roster.Patcher(s.Name()); p != nil {
		p.Left()
	}
	mb.state.Course.Unforce(s.Name())
	mb.state.Connections.Left.Forget(s)
	mb.state.Roster.Died(s)
	for _, conn := range mb.state.Connections.All {
		conn.Places.Forget(s)
	}
	switch {
	case s.Plugin.Sleep.Asleep:
		mb.pipeline.FallAsleep(s, s.Plugin.Away)
	case s.Source.Synced && state.PublishesRows(s.Plugin.Ready) && !mb.state.Course.Closed:
		mb.intake.GoesAway(s.Plugin, state.NoSession, s.Plugin.Away)
	}
}

// Inspect ends a session that hangs, given how much time it lost since the last look, and reports
// whether the plugin is to be pinged.
func (mb *Members) Inspect(s *state.Session, now time.Time, lost time.Duration) (ping bool) {
	s.Watch.Lose(lost)
	if mb.state.Course.Flight != nil {
		mb.state.Course.Flight.Lost(s.Name(), lost, now)
	}
	s.Watch.Hear(s.Link.LastSeen(), s.Link.LastProgress(), now)
	mb.results.AskAgain(s, now)
	why := s.Hangs(now)
	if rival := mb.state.Roster.Rivals[s.Plugin]; why == nil && rival != nil && !rival.Warm {
		why = s.GaveUp(now)
	}
	if why != nil {
		mb.state.Metrics.Crossed(s.Name(), "hung")
		s.Cancel(why)
		s.GiveUp()
		return false
	}
	switch {
	case !s.Watch.Pinged.At.IsZero():
		if end := s.Watch.Due(s.Watch.Pinged, s.PingEvery()); !s.Watch.Silent && !now.Before(end) {
			s.Watch.Mark()
			mb.state.Log.Warn("a plugin does not answer; what it said last stays", "plugin", s.Name(), "since",
				s.Watch.Pinged.At.UTC(), "limit", s.Limits().Progress)
		}
		return false
	case now.Sub(s.Watch.Answered) >= s.PingEvery():
		s.Watch.Ping(now)
		return true
	}
	return false
}

// AdmitRival takes a candidate's session in: it is fed like the served one, and what it says goes
// into its shadow.
func (mb *Members) AdmitRival(name string, ready *pb.Ready, open func(*state.Plugin) *state.Session) (*state.Session, error) {
	k := mb.state.Roster.Awaited(name)
	if k == nil {
		return nil, fmt.Errorf("plugin %s is not being swapped", name)
	}
	if _, err := stage.Levels(mb.state.Roster.StagePlugins(name, ready)); err != nil {
		return nil, err
	}
	k.Says(ready)
	s := open(k)
	s.Hide(state.NewShadow(environment.Tables{}))
	k.Joins(s)
	if s.Generates() {
		s.Maker.Begin(ready)
		for _, conn := range mb.state.Connections.Sorted() {
			mb.placer.AttachShadow(s, conn)
		}
	}
	if s.Kind().Patches() {
		k.PatchesBy(mb.patches.NewPatcher(k))
		mb.state.Roster.Rivals[k].Begin()
		k.Patcher.Learn(mb.state.Roster.Patcher(s.Name()))
		k.Patcher.Begin()
	}
	return s, nil
}

// dismissRival takes a session out that was not served.
func (mb *Members) dismissRival(s *state.Session) {
	s.Plugin.Leaves(mb.state.Clock.Now())
	mb.state.Connections.Left.Forget(s)
	if s.Plugin.Patcher != nil {
		s.Plugin.Patcher.Left()
	}
}
