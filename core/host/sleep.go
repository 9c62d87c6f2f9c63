package host

import "context"

// sleep waits until the plugin is wanted, or ctx ends. It has been ready once, so that a failure is no matter of the start any more.
func (s *slot) sleep(ctx context.Context) {
	s.mu.Lock()
	s.settled = true
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
