package control

import (
	"fmt"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/control/internal/state"
	"github.com/coxswain-mesh/coxswain/core/control/internal/status"
	"github.com/coxswain-mesh/coxswain/core/control/operations"
	"github.com/coxswain-mesh/coxswain/core/report"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Ready returns why proxies aren't served; none: they are.
func (c *Control) Ready() []string { return operations.Locked(&c.mu, c.mid.Stages.Pipeline.NotReady) }

// Revision returns the revision that is served.
func (c *Control) Revision() report.Revision { return operations.Locked(&c.mu, c.mid.Pages.Revision) }

// PluginRows returns what is known of each declared plugin, by name.
func (c *Control) PluginRows() map[string]status.PluginRows {
	return operations.Locked(&c.mu, c.mid.Pages.PluginRows)
}

// Stale returns for each plugin whether its last words may be out of date.
func (c *Control) Stale() map[string]status.Stale { return operations.Locked(&c.mu, c.mid.Pages.Stale) }

// Hiding returns numbers of rows that are not served, for each plugin that publishes rows.
func (c *Control) Hiding() map[string]status.Hiding {
	return operations.Locked(&c.mu, c.mid.Pages.Hiding)
}

// Views returns all views that connections are in.
func (c *Control) Views() []report.View { return operations.Locked(&c.mu, c.mid.Pages.Views) }

// Streams returns the connected streams.
func (c *Control) Streams() []report.Stream { return operations.Locked(&c.mu, c.mid.Pages.Streams) }

// Tables returns the tables that have rows, or that a plugin reads or publishes.
func (c *Control) Tables() []report.Table { return operations.Locked(&c.mu, c.mid.Pages.Tables) }

// Sizes returns how many rows each table has, by key.
func (c *Control) Sizes() map[string]int {
	return operations.Locked(&c.mu, func() map[string]int { return c.mid.State.Env.Committed.Sizes() })
}

// Rows returns the rows of a table.
func (c *Control) Rows(table string) []*pb.Row {
	return operations.Locked(&c.mu, func() (rows []*pb.Row) {
		for _, r := range c.mid.State.Env.Committed.Rows(table, false) {
			rows = append(rows, r)
		}
		return rows
	})
}

// Dump returns what the streams of a node are to have; ok: there are any.
func (c *Control) Dump(nodeID string) (types []report.TypeDump, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mid.Pages.DumpOf(nodeID)
}

// TableRows says for each table of a plugin what became of its rows: served, hidden and by whom, or
// held.
func (c *Control) TableRows(plugin string) []report.TableRows {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mid.Pages.TableRows(plugin, func() {
		c.mu.Unlock()
		c.mu.Lock()
	})
}

// Holds returns what is held, by plugin.
func (c *Control) Holds() []state.Held { return operations.Locked(&c.mu, c.mid.Pages.Held) }

// Holding says in a line each what is held.
func (c *Control) Holding() (lines []string) {
	for _, h := range c.Holds() {
		lines = append(lines, fmt.Sprintf("held: plugin %s: %s; coxswain hold show %s", h.Plugin, strings.Join(h.Reasons, "; "), h.Plugin))
	}
	return lines
}

// Hold returns what is held of a plugin, with the difference of its rows.
func (c *Control) Hold(plugin string) (*state.Held, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mid.Pages.HoldOf(plugin)
}
