package control

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/core/environment"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// instances are what those need who run a plugin for each row of a table.
type instances struct {
	// tables are those with such rows; changed: one of them has, since it was told.
	tables  []string
	changed bool
	moved   chan struct{}
	// gathered is closed when all that was declared is in; gone: what it asks for is declared, too.
	gathered  chan struct{}
	announced bool
	gone      bool
}

func (i *instances) gather() {
	if !i.announced {
		i.announced = true
		close(i.gathered)
	}
}

func (i *instances) mark(changes environment.Changes) {
	i.changed = i.changed || slices.ContainsFunc(i.tables, func(t string) bool { return len(changes[t]) > 0 })
}

// tell says that rows have changed, once what they belong to is served.
func (i *instances) tell() {
	if !i.changed {
		return
	}
	i.changed = false
	select {
	case i.moved <- struct{}{}:
	default:
	}
}

// Gathered is closed when all that was declared at first is in, and the first revision waits for Go.
func (c *Control) Gathered() <-chan struct{} { return c.instances.gathered }

// Go lets the first revision be made once what was declared meanwhile is in, too.
func (c *Control) Go() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.instances.gone = true
	c.schedule(c.clock.Now())
}

// Waive lets the first revision be made without a plugin, and reports whether it would have waited for it.
func (c *Control) Waive(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	waives := c.orders.waive(name)
	c.schedule(c.clock.Now())
	return waives
}

func (o *orders) waive(name string) bool {
	k, s := o.roster.known[name], o.roster.session(name)
	if o.course.started || k == nil || k.Expected.Optional || s != nil && (s.Source.Synced || !publishesRows(s.plugin.ready)) {
		return false
	}
	k.Expected.Optional = true
	return true
}

// Moved receives after rows of the tables that Following was called with last have changed.
func (c *Control) Moved() <-chan struct{} { return c.instances.moved }

// Following returns the rows of tables as proxies are served by them, and has Moved told of changes from now on. ok is false while a revision is in the
// making: Moved is told when it is served.
func (c *Control) Following(tables []string) (rows map[string][]*pb.Row, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.instances.tables = tables
	if c.course.flight != nil || c.course.undo != 0 || c.departure.parting != nil {
		c.instances.changed = true
		return nil, false
	}
	rows = map[string][]*pb.Row{}
	for _, t := range tables {
		for _, row := range c.env.Rows(t, false) {
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
		for _, row := range c.env.Coming(t) {
			rows[t] = append(rows[t], row)
		}
	}
	return rows
}
