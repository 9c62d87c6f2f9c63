package parttest

import (
	"fmt"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
)

// counter counts what happens to plugins and revisions, by words: `committed full`, `fault memory`.
type counter struct {
	state.NoMetrics
	w *World
}

func (c counter) count(n int, words ...any) {
	text := fmt.Sprintln(words...)
	c.w.heard.Lock()
	defer c.w.heard.Unlock()
	c.w.counted[text[:len(text)-1]] += n
}

// Committed implements state.Metrics.
func (c counter) Committed(kind string) { c.count(1, "committed", kind) }

// Served implements state.Metrics.
func (c counter) Served(kind string, _ time.Duration) { c.count(1, "served", kind) }

// Partial implements state.Metrics.
func (c counter) Partial(plugin string) { c.count(1, "partial", plugin) }

// Fault implements state.Metrics.
func (c counter) Fault(plugin string) { c.count(1, "fault", plugin) }

// Hidden implements state.Metrics.
func (c counter) Hidden(rows int) { c.count(rows, "hidden") }

// Woken implements state.Metrics.
func (c counter) Woken(connections, _ int) { c.count(connections, "woken") }

// Unknown implements state.Metrics.
func (c counter) Unknown(plugin, what string, n int) { c.count(n, "unknown", plugin, what) }

// Crossed implements state.Metrics.
func (c counter) Crossed(plugin, limit string) { c.count(1, "crossed", plugin, limit) }

// Authenticated implements state.Metrics.
func (c counter) Authenticated(plugin, verdict string) { c.count(1, "authenticated", plugin, verdict) }

// Changed implements state.Metrics.
func (c counter) Changed(table string, added, changed, removed int) {
	c.count(added, "added", table)
	c.count(changed, "changed", table)
	c.count(removed, "removed", table)
}

// Debounced implements state.Metrics.
func (c counter) Debounced(waited time.Duration) { c.count(1, "debounced", waited) }

// Retained implements state.Metrics.
func (c counter) Retained(views int, _ int64) {
	c.w.heard.Lock()
	defer c.w.heard.Unlock()
	c.w.counted["retained"] = views
}
