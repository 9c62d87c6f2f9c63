package pipeline

import (
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/state"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Sleepers are plugins that start on demand.
type Sleepers struct {
	state *state.State
}

// Wanted says whether some connection asks for types that a generator serves to it, a source has
// rows to read, an authenticator was to be asked lately, or somebody wants to compare another one
// with it.
func (sl *Sleepers) Wanted(name string) bool {
	if sl.state.Roster.Tried(name) {
		return true
	}
	switch k := sl.state.Roster.Plugins[name]; k.Kind() {
	case pb.KindGenerator:
	case pb.KindAuthenticator:
		return k.AskedLately(sl.state.Clock.Now())
	default:
		if len(k.Ready.Methods) > 0 && k.AskedLately(sl.state.Clock.Now()) {
			return true
		}
		return slices.ContainsFunc(k.Ready.Reads, func(r *pb.Read) bool { return sl.state.Env.Has(r.Table, r.Sources) })
	}
	for _, conn := range sl.state.Connections.All {
		if conn.Asks(name) {
			return true
		}
	}
	return false
}

// rouseReaders wakes sources up that sleep and read what changed.
func (sl *Sleepers) rouseReaders(changes environment.Changes) {
	for _, k := range sl.state.Roster.Plugins {
		reads := func(r *pb.Read) bool { return len(changes[r.Table]) > 0 }
		if k.Sleep.Asleep && k.Kind() != pb.KindGenerator && k.Kind() != pb.KindAuthenticator && slices.ContainsFunc(k.Ready.Reads, reads) && sl.Wanted(k.Name()) {
			sl.state.Roster.Rouse(k.Name())
		}
	}
}

// Slumber lets plugins sleep that start on demand and that nobody needs.
func (sl *Sleepers) Slumber(now time.Time, at func(time.Time)) {
	for s := range sl.state.Roster.Sessions() {
		if !s.Plugin.Expected.OnDemand || s.Plugin.Sleep.Asleep {
			continue
		}
		if s.Watch.Needed.IsZero() || now.Sub(s.Watch.Needed) >= state.Drowsy && (sl.Wanted(s.Name()) || !s.State.Busy.IsZero()) {
			s.Watch.Needed = now
		}
		if end := s.Watch.Needed.Add(state.Drowsy); end.After(now) {
			at(end)
			continue
		}
		s.Plugin.Sleep.Asleep, s.Plugin.Sleep.Roused = true, false
		s.Cancel(host.ErrAsleep)
	}
}

// FallAsleep notes that the session of a plugin that sleeps has ended.
func (p *Pipeline) FallAsleep(s *state.Session, now time.Time) {
	s.Plugin.Away = time.Time{}
	s.Plugin.Suspects.Forget()
	s.Plugin.Absence.Ends()
	if s.Generates() && state.PublishesRows(s.Plugin.Ready) { // what it said was for those whom it served
		p.state.Env.Replace(s.Plugin.Shard, nil)
		p.intake.Touched(s.Name(), now)
	}
	if p.intake.sleepers.Wanted(s.Name()) { // since it was told to go
		p.state.Roster.Rouse(s.Name())
	}
	if p.state.Course.Flight != nil {
		p.state.Course.Flight.Leave(s.Name())
		p.Advance(now)
	}
}
