package consul

import (
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// complaints logs what goes wrong: once when it begins, once a minute while it lasts, and when it
// is over.
type complaints struct {
	out     sdk.Publisher
	failing map[*watch]bool
	hidden  map[*watch]bool
	said    map[string]time.Time
}

func newComplaints(out sdk.Publisher) *complaints {
	return &complaints{out: out, failing: map[*watch]bool{}, hidden: map[*watch]bool{}, said: map[string]time.Time{}}
}

// often reports whether something was said within the last minute.
func (c *complaints) often(what string, now time.Time) bool {
	if at, ok := c.said[what]; ok && now.Sub(at) < time.Minute {
		return true
	}
	c.said[what] = now
	return false
}

func (c *complaints) fails(w *watch, err error, now time.Time) {
	c.failing[w] = true
	if text := instances.Clip(err.Error()); !c.often("fails", now) {
		c.out.Log(sdk.Warn, "Consul can't be asked; what it said last stays", "of", w.String(), "error", text, "unanswered", len(c.failing))
	}
}

// away reports whether a datacenter can't be asked even for its list of services.
func (c *complaints) away(datacenter string) bool {
	for w := range c.failing {
		if w.lists() && w.datacenter == datacenter {
			return true
		}
	}
	return false
}

func (c *complaints) blind(now time.Time) {
	if !c.often("blind", now) {
		c.out.Log(sdk.Error, "the token may see services, but none of their instances"+rights)
	}
}

func (c *complaints) hides(w *watch, now time.Time) {
	c.hidden[w] = true
	if !c.often("hides", now) {
		c.out.Log(sdk.Warn, "the token may see less than before; what was read last stays. Give it its rights back, or restart the plugin to take it as it is",
			"of", w.String(), "hidden", len(c.hidden))
	}
}

func (c *complaints) answers(w *watch, now time.Time) {
	before := len(c.failing)
	c.forget(w)
	if before > 0 && len(c.failing) == 0 {
		delete(c.said, "fails")
		c.out.Log(sdk.Info, "Consul answers again")
	}
}

func (c *complaints) forget(w *watch) {
	delete(c.failing, w)
	delete(c.hidden, w)
}
