package control

import (
	"errors"
	"time"

	"github.com/coxswain-mesh/coxswain/core/environment"
	"github.com/coxswain-mesh/coxswain/core/host"
)

// drowsy is how often it is looked whether somebody needs a plugin that starts on demand. If nobody does, it is put to sleep.
const drowsy = 5 * time.Minute

// errPublishes is why a plugin can't sleep: its rows would be missing from the first revision.
var errPublishes = errors.New("it publishes rows: it can't start on demand (start)")

// wanted says whether some connection asks for types that a generator serves to it, or somebody wants to compare another one with it.
func (c *Control) wanted(name string) bool {
	if c.trials[name] != nil {
		return true
	}
	for _, conn := range c.conns {
		if conn.asks(name) {
			return true
		}
	}
	return false
}

// rouse wakes a generator up that sleeps.
func (c *Control) rouse(name string) {
	k := c.known[name]
	if k == nil || !k.asleep || k.roused {
		return
	}
	k.roused = true
	if c.cfg.OnWanted != nil {
		go c.cfg.OnWanted(name)
	}
}

// slumber lets generators sleep that start on demand and that nobody needs.
func (c *Control) slumber(now time.Time, at func(time.Time)) {
	for _, s := range c.sessions {
		if !s.OnDemand || s.asleep {
			continue
		}
		if s.needed.IsZero() || now.Sub(s.needed) >= drowsy && (c.wanted(s.Name) || !s.busy.IsZero()) {
			s.needed = now
		}
		if end := s.needed.Add(drowsy); end.After(now) {
			at(end)
			continue
		}
		s.asleep, s.roused = true, false
		s.cancel(host.ErrAsleep)
	}
}

// fallAsleep notes that the session of a plugin that sleeps has ended.
func (c *Control) fallAsleep(s *session, now time.Time) {
	s.away, s.suspects = time.Time{}, environment.Changes{}
	if c.wanted(s.Name) { // since it was told to go
		c.rouse(s.Name)
	}
	if c.flight != nil {
		delete(c.flight.waiting, s.Name)
		c.advance(now)
	}
}
