package host

import (
	"context"

	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// sleep waits until the plugin is wanted, or ctx ends. It has been ready once, so that a failure is
// no matter of the start any more.
func (s *slot) sleep(ctx context.Context) {
	s.mu.Lock()
	s.proven = true
	s.moveLocked(Asleep, nil, func(st *Status) { st.PID = 0 })
	s.mu.Unlock()
	select {
	case <-s.awake:
	case <-ctx.Done():
	}
}

// Wake starts a plugin's process that sleeps, or will in a moment because Sessions.Serve said so.
func (h *Host) Wake(plugin string) {
	for _, s := range h.all() {
		if s.entry.Name != plugin {
			continue
		}
		select {
		case s.awake <- struct{}{}:
		default: // it wakes up already
		}
	}
}

// declare has the core learn, without a process, what a built-in that starts on demand says of
// itself. It reports whether the plugin sleeps now; false: it is to start, be it to say what is
// wrong.
func (h *Host) declare(s *slot) bool {
	e := s.entry
	if h.cfg.Describe == nil || e.Builtin == "" || e.Start != manifest.OnDemand || s.isStandby() {
		return false
	}
	with, err := h.launcher.fill(e)
	if err != nil {
		return false
	}
	ready, err := h.cfg.Describe(e.Builtin, hello(e, with.config, h.cfg.Epoch, h.launcher.allowance(e)))
	if err != nil || check(e, ready) != nil {
		return false
	}
	h.secrets.Declare(ready)
	inst := &Instance{Entry: e, Order: s.order, Ready: ready}
	if h.cfg.Sessions.Learn(inst) != nil {
		return false
	}
	s.named(inst)
	return true
}
