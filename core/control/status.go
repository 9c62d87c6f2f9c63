package control

import (
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/status"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Ready returns why proxies aren't served; none: they are.
func (c *Control) Ready() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stages.Pipeline.NotReady()
}

// Revision returns the revision that is served.
func (c *Control) Revision() report.Revision {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages.Revision()
}

// PluginRows returns what is known of each declared plugin, by name.
func (c *Control) PluginRows() map[string]status.PluginRows {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages.PluginRows()
}

// Views returns all views that connections are in.
func (c *Control) Views() []report.View {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages.Views()
}

// Streams returns the connected streams.
func (c *Control) Streams() []report.Stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages.Streams()
}

// Tables returns the tables that have rows, or that a plugin reads or publishes.
func (c *Control) Tables() []report.Table {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages.Tables()
}

// Rows returns the rows of a table.
func (c *Control) Rows(table string) []*pb.Row {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*pb.Row
	for _, r := range c.state.Env.Rows(table, false) {
		out = append(out, r)
	}
	return out
}

// Dump returns what the streams of a node are to have.
func (c *Control) Dump(nodeID string) ([]report.TypeDump, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pages.DumpOf(nodeID)
}
