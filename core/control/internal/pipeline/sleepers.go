package pipeline

import (
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/host"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Sleepers are plugins that start on demand.
type Sleepers struct {
	state *state.State
}

// Wanted reports whether some connection asks for types that a generator serves to it, a source has
// rows to read, a deriver those or rows of its own, an authenticator was to be asked lately, or
// somebody wants to compare another one with it.
func (sl *Sleepers) Wanted(name string) bool {
	if sl.state.Roster.Tried(name) {
		return true
	}
	switch k := sl.state.Roster.Plugins[name]; {
	case k.Kind().Generates():
	case k.Kind().Authenticates():
		return k.AskedLately(sl.state.Clock.Now())
	default:
		if k.Ready.Derives {
			return sl.derives(k)
		}
		if len(k.Ready.Methods) > 0 && k.AskedLately(sl.state.Clock.Now()) {
			return true
		}
		return slices.ContainsFunc(k.Ready.Reads, func(r *pb.Read) bool { return sl.state.Env.Committed.Has(r.Table, r.Sources) })
	}
	for _, conn := range sl.state.Connections.All {
		if conn.Asks(name) {
			return true
		}
	}
	return false
}

// derives reports whether a deriver has something to derive from: rows of a table that it reads
// whole. Those of a table of which it reads only what sources say need nobody alone, for they are
// what it adds to. Before the first revision, which is to have all that is derived, rows count that
// wait for it.
func (sl *Sleepers) derives(k *state.Plugin) bool {
	env := sl.state.Env
	for _, n := range env.Tally.LenOf(k.Shard) {
		if n > 0 {
			return true
		}
	}
	return env.Held.Rows(k.Shard) > 0 || slices.ContainsFunc(k.Ready.Reads, func(r *pb.Read) bool {
		return !r.Sources && (env.Committed.Has(r.Table, false) || !sl.state.Course.Started && len(env.Pending.Coming(r.Table)) > 0)
	})
}

// rouse wakes one up. Revisions wait for a deriver as for one that has just gone away.
func (sl *Sleepers) rouse(k *state.Plugin) {
	if k.Ready.Derives && !k.Sleep.Roused {
		k.Expect(sl.state.Clock.Now())
	}
	sl.state.Roster.Rouse(k.Name())
}

// rouseDerivers wakes up those whom the first revision needs, and says why it has to wait.
func (sl *Sleepers) rouseDerivers() (reasons []string) {
	for _, k := range sl.state.Roster.Sorted() {
		if k.Sleep.Asleep && !k.Expected.Optional && k.Ready != nil && k.Ready.Derives && sl.derives(k) {
			sl.rouse(k)
			reasons = append(reasons, fmt.Sprintf("plugin %s, which rows ask for, has not started", k.Name()))
		}
	}
	return reasons
}

// rouseReaders wakes sources up that sleep and read what changed.
func (sl *Sleepers) rouseReaders(changes environment.Changes) {
	for _, k := range sl.state.Roster.Plugins {
		reads := func(r *pb.Read) bool { return len(changes[r.Table]) > 0 }
		if k.Sleep.Asleep && !k.Kind().Generates() && !k.Kind().Authenticates() && slices.ContainsFunc(k.Ready.Reads, reads) && sl.Wanted(k.Name()) {
			sl.rouse(k)
		}
	}
}

// Slumber lets plugins sleep that start on demand and that nobody needs.
func (sl *Sleepers) Slumber(now time.Time, at func(time.Time)) {
	for s := range sl.state.Roster.Sessions() {
		if !s.Plugin.Expected.OnDemand || s.Plugin.Sleep.Asleep {
			continue
		}
		if s.Watch.Needed.IsZero() || now.Sub(s.Watch.Needed) >= state.SleepAfter && (sl.Wanted(s.Name()) || !s.State.Busy.IsZero()) {
			s.Watch.Need(now)
		}
		if end := s.Watch.Needed.Add(state.SleepAfter); end.After(now) {
			at(end)
			continue
		}
		s.Plugin.Doze(true)
		s.Cancel(host.ErrAsleep)
	}
}

// FallAsleep notes that the session of a plugin that sleeps has ended.
func (p *Pipeline) FallAsleep(s *state.Session, now time.Time) {
	s.Plugin.Expect(time.Time{})
	s.Plugin.Suspects.Forget()
	s.Plugin.Absence.Ends()
	if s.Generates() && state.PublishesRows(s.Plugin.Ready) { // what it said was for those whom it served
		p.state.Env.Pending.Replace(s.Plugin.Shard, nil)
		p.intake.Touched(s.Name(), now)
	}
	wanted := p.intake.sleepers.Wanted(s.Name()) // since it was told to go
	if wanted {
		p.intake.sleepers.rouse(s.Plugin)
	}
	if p.state.Course.Flight != nil && !(wanted && s.Plugin.Ready.Derives) {
		p.state.Course.Flight.Leave(s.Name())
		p.Advance(now)
	}
}
