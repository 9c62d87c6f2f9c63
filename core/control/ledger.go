package control

import (
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/status"
)

// Hiding returns these numbers for each plugin that publishes rows.
func (c *Control) Hiding() map[string]status.Hiding {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages.Hiding()
}

// TableRows says for each table of a plugin what became of its rows: served, hidden and by whom, or held.
func (c *Control) TableRows(plugin string) []report.TableRows {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages.TableRows(plugin, func() {
		c.mu.Unlock()
		c.mu.Lock()
	})
}
