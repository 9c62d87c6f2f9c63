package host

import (
	"context"
	"fmt"
	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// Standby is a plugin's process beside the one of its name that is served: a candidate for its
// place or, after Exchange, the one that had the place before. It is never started again.
type Standby struct {
	h    *Host
	slot *slot
}

// Standby starts an entry beside the plugin of its name; Sessions is given its session as that of a
// candidate.
func (h *Host) Standby(e *manifest.Entry, order int) (*Standby, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running == nil {
		return nil, errNotRunning
	}
	s := newSlot(e, order, h.cfg.Log, h.cfg.OnTransition)
	s.proven, s.standby = true, true
	h.begin(s)
	return &Standby{h, s}, nil
}

// Gone is closed when the process has ended; Err then says why.
func (s *Standby) Gone() <-chan struct{} { return s.current().gone }

// Err is why it ended, nil if it was stopped. It may be called when Gone is closed.
func (s *Standby) Err() error { return s.current().err }

// Status of the process.
func (s *Standby) Status() Status { return s.current().read() }

// Synced notes that it owes nothing more: it may stand by for long.
func (s *Standby) Synced() {
	at := s.current()
	at.mu.Lock()
	defer at.mu.Unlock()
	at.synced = true
}

func (s *Standby) current() *slot {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	return s.slot
}

// Exchange makes it the plugin of its name, which is kept running from now on; that one is what
// stands by then. failed is closed when the plugin fails for the first time.
func (s *Standby) Exchange() (failed <-chan struct{}, err error) {
	next, err := s.exchange()
	if err != nil {
		return nil, err
	}
	s.h.remember(next)
	return next.fell, nil
}

// exchange returns who has the place now.
func (s *Standby) exchange() (*slot, error) {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	for i, last := range s.h.slots {
		if last.entry.Name != s.slot.entry.Name {
			continue
		}
		next := s.slot
		if next.over { // it failed just now: it is started again, as any plugin is
			next = newSlot(next.runs(), next.order, s.h.cfg.Log, s.h.cfg.OnTransition)
			next.proven = true
			if s.h.running != nil {
				s.h.begin(next)
			}
		}
		s.h.slots[i], s.slot = next, last
		last.role(true)
		next.role(false)
		next.serving()
		return next, nil
	}
	return nil, fmt.Errorf("plugin %s is not there", s.slot.entry.Name)
}

func (s *slot) role(standby bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.standby = standby
}

// Stop ends it and waits until it is gone.
func (s *Standby) Stop() {
	at := s.current()
	at.stop()
	<-at.gone
}

// Add starts a plugin that the set had not. Its failures are its own.
func (h *Host) Add(e *manifest.Entry, order int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running == nil {
		return errNotRunning
	}
	s := newSlot(e, order, h.cfg.Log, h.cfg.OnTransition)
	s.proven = true
	h.slots = append(h.slots, s)
	h.begin(s)
	return nil
}

// Remove ends a plugin and waits until it is gone.
func (h *Host) Remove(name string) {
	h.mu.Lock()
	var found *slot
	for i, s := range h.slots {
		if s.entry.Name == name {
			found = s
			h.slots = append(h.slots[:i:i], h.slots[i+1:]...)
			break
		}
	}
	h.mu.Unlock()
	if found != nil {
		found.stop()
		<-found.gone
	}
}

// Up waits until a plugin has said Ready.
func (h *Host) Up(ctx context.Context, name string) error {
	for _, s := range h.all() {
		if s.entry.Name != name {
			continue
		}
		select {
		case <-s.up:
			return nil
		case <-s.fell:
			return fmt.Errorf("it failed: %s", s.read().LastError)
		case <-s.gone:
			return errNotRunning
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return fmt.Errorf("plugin %s is not there", name)
}
