package control

import (
	"github.com/coxswain-mesh/coxswain/core/guard"
)

// OnRefusals returns a channel that is closed when more proxies than limit have refused what they
// got since the switch.
func (t *Trial) OnRefusals(limit guard.Share) <-chan struct{} {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	if t.of.Refusals.Limit(limit, len(t.c.state.Connections.All)) {
		close(t.of.Over)
	}
	return t.of.Over
}

// Refusals returns what proxies refused since the switch, and why: one line for each proxy and
// type, some of many.
func (t *Trial) Refusals() (proxies int, lines []string) {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	if t.of.Refusals == nil {
		return 0, nil
	}
	return t.of.Refusals.All()
}
