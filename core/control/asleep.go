package control

import (
	"errors"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/host"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// drowsy is how often it is looked whether somebody needs a plugin that starts on demand. If nobody does, it is put to sleep.
const drowsy = 5 * time.Minute

// errReads is why a plugin can't sleep.
var errReads = errors.New("only what reads rows, and derives none, can start on demand (start): nothing else says when it is needed")

// canSleep says why a plugin that is to start on demand can't, if so: rows that others need at once would be missing from a revision.
func canSleep(kind pb.Kind, r *pb.Ready) error {
	switch {
	case kind == pb.KindAuthenticator, kind == pb.KindGenerator:
		return nil
	case r.Derives || len(r.Reads)+len(r.Methods) == 0:
		return errReads
	}
	return nil
}

// wanted says whether some connection asks for types that a generator serves to it, a source has rows to read, an authenticator was
// to be asked lately, or somebody wants to compare another one with it.
func (sl *sleepers) wanted(name string) bool {
	if sl.roster.tried(name) {
		return true
	}
	switch k := sl.roster.known[name]; k.Kind() {
	case pb.KindGenerator:
	case pb.KindAuthenticator:
		return k.askedLately(sl.clock.Now())
	default:
		if len(k.ready.Methods) > 0 && k.askedLately(sl.clock.Now()) {
			return true
		}
		return slices.ContainsFunc(k.ready.Reads, func(r *pb.Read) bool { return sl.env.Has(r.Table, r.Sources) })
	}
	for _, conn := range sl.conns.all {
		if conn.asks(name) {
			return true
		}
	}
	return false
}

// askedLately reports whether a plugin that starts on demand was to be asked not long ago.
func (k *known) askedLately(now time.Time) bool {
	return !k.Sleep.Asked.IsZero() && now.Sub(k.Sleep.Asked) < drowsy
}

// rouseReaders wakes sources up that sleep and read what changed.
func (sl *sleepers) rouseReaders(changes environment.Changes) {
	for _, k := range sl.roster.known {
		reads := func(r *pb.Read) bool { return len(changes[r.Table]) > 0 }
		if k.Sleep.Asleep && k.Kind() != pb.KindGenerator && k.Kind() != pb.KindAuthenticator && slices.ContainsFunc(k.ready.Reads, reads) && sl.wanted(k.Name()) {
			sl.roster.rouse(k.Name())
		}
	}
}

// rouse wakes a plugin up that sleeps.
func (r *roster) rouse(name string) {
	k := r.known[name]
	if k == nil || !k.Sleep.Asleep || k.Sleep.Roused {
		return
	}
	k.Sleep.Roused = true
	r.wake(name)
}

// slumber lets plugins sleep that start on demand and that nobody needs.
func (sl *sleepers) slumber(now time.Time, at func(time.Time)) {
	for s := range sl.roster.live() {
		if !s.plugin.Expected.OnDemand || s.plugin.Sleep.Asleep {
			continue
		}
		if s.Watch.Needed.IsZero() || now.Sub(s.Watch.Needed) >= drowsy && (sl.wanted(s.Name()) || !s.State.Busy.IsZero()) {
			s.Watch.Needed = now
		}
		if end := s.Watch.Needed.Add(drowsy); end.After(now) {
			at(end)
			continue
		}
		s.plugin.Sleep.Asleep, s.plugin.Sleep.Roused = true, false
		s.cancel(host.ErrAsleep)
	}
}

// fallAsleep notes that the session of a plugin that sleeps has ended.
func (p *pipeline) fallAsleep(s *session, now time.Time) {
	s.plugin.away = time.Time{}
	s.plugin.suspects.Forget()
	s.plugin.absence.ends()
	if s.generates() && publishesRows(s.plugin.ready) { // what it said was for those whom it served
		p.env.Replace(s.plugin.shard, nil)
		p.intake.touched(s.Name(), now)
	}
	if p.intake.sleepers.wanted(s.Name()) { // since it was told to go
		p.roster.rouse(s.Name())
	}
	if p.course.flight != nil {
		p.course.flight.Leave(s.Name())
		p.advance(now)
	}
}
