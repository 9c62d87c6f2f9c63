package control

import (
	"fmt"

	"github.com/coxswain-mesh/coxswain/core/xds"
)

// refusals counts the proxies that refuse what they get after a switch.
type refusals struct {
	// from is the revision of the switch.
	from  uint64
	nodes map[string]bool
	lines []string
	limit Share
	over  chan struct{}
	told  bool
}

func newRefusals(from uint64) *refusals {
	return &refusals{from: from, nodes: map[string]bool{}, over: make(chan struct{})}
}

// OnRefusals returns a channel that is closed when more proxies than limit have refused what they got since the switch.
func (t *Trial) OnRefusals(limit Share) <-chan struct{} {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	t.refusals.limit = limit
	t.refusals.check(len(t.c.conns))
	return t.refusals.over
}

// Refusals returns what proxies refused since the switch, and why: one line for each proxy and type, some of many.
func (t *Trial) Refusals() (proxies int, lines []string) {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	if t.refusals == nil {
		return 0, nil
	}
	return len(t.refusals.nodes), append(lines, t.refusals.lines...)
}

// countRefusal notes a refusal of a proxy that had refused nothing of the type before.
func (c *Control) countRefusal(conn *connection, o xds.Outcome) {
	if o.Refused == "" || conn.outcomes[o.Type].refused != "" {
		return
	}
	for _, t := range c.trials {
		r := t.refusals
		if r == nil || o.Number < r.from {
			continue
		}
		id := conn.peer.Node.GetId()
		r.nodes[id] = true
		if len(r.lines) < examples {
			r.lines = append(r.lines, fmt.Sprintf("%s refused %s: %s", id, o.Type, oneLine(o.Refused, 1000)))
		}
		r.check(len(c.conns))
	}
}

func (r *refusals) check(proxies int) {
	if r.limit != (Share{}) && !r.told && r.limit.exceeded(len(r.nodes), proxies) {
		r.told = true
		close(r.over)
	}
}
