package control

import (
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Gathered is closed when all that was declared at first is in, and the first revision waits for Go.
func (c *Control) Gathered() <-chan struct{} { return c.state.Instances.Gathered }

// Go lets the first revision be made once what was declared meanwhile is in, too.
func (c *Control) Go() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Instances.Gone = true
	c.schedule(c.state.Clock.Now())
}

// Waive lets the first revision be made without a plugin, and reports whether it would have waited for it.
func (c *Control) Waive(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	waives := c.plugins.Orders.Waive(name)
	c.schedule(c.state.Clock.Now())
	return waives
}

// Moved receives after rows of the tables that Following was called with last have changed.
func (c *Control) Moved() <-chan struct{} { return c.state.Instances.Moved }

// Following returns the rows of tables as proxies are served by them, and has Moved told of changes from now on. ok is false while a revision is in the
// making: Moved is told when it is served.
func (c *Control) Following(tables []string) (rows map[string][]*pb.Row, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Instances.Tables = tables
	if c.state.Course.Flight != nil || c.state.Course.Undo != 0 || c.plugins.Departure.Parting != nil {
		c.state.Instances.Changed = true
		return nil, false
	}
	rows = map[string][]*pb.Row{}
	for _, t := range tables {
		for _, row := range c.state.Env.Rows(t, false) {
			rows[t] = append(rows[t], row)
		}
	}
	return rows, true
}

// Coming returns the rows of tables as the first revision will have them.
func (c *Control) Coming(tables []string) map[string][]*pb.Row {
	c.mu.Lock()
	defer c.mu.Unlock()
	rows := map[string][]*pb.Row{}
	for _, t := range tables {
		for _, row := range c.state.Env.Coming(t) {
			rows[t] = append(rows[t], row)
		}
	}
	return rows
}
