package istio

import (
	"context"
	"fmt"
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// engine keeps what is wanted up to date. What is wanted are roots of the graph; after each wave those that changed are
// reported. Load assignments alone are made outside of it (assignments), which Overtake shares.
type engine struct {
	g           *graph
	state       *state.State
	connections map[uint64]*connection
	views       *views
	assignments *assignments
	// watched are what a wave may change, by root.
	watched map[incr.Observed]watcher
	// scopes in use, and by how many views.
	scopes map[Scope]int
}

// watcher reports what a root of it has become.
type watcher interface {
	report(out sdk.Output)
}

// connection is an attached proxy.
type connection struct {
	id    uint64
	types []string
	root  *incr.Root[uint64, placed]
	// views that it was placed in, by type.
	views map[string]uint64
}

func newEngine(c Config) *engine {
	e := &engine{
		g:           newGraph(c),
		connections: map[uint64]*connection{},
		assignments: newAssignments(),
		watched:     map[incr.Observed]watcher{},
		scopes:      map[Scope]int{},
	}
	e.views = newViews(e)
	return e
}

var (
	_ sdk.Engine = (*engine)(nil)
)

// Commit implements sdk.Engine.
func (e *engine) Commit(_ context.Context, change *state.Change, out sdk.Output) error {
	e.load(change, out)
	touched := e.assignments.commit(change, out)
	e.wave(out)
	e.assignments.report(touched, out)
	e.faults(out)
	return nil
}

// load stages the rows that changed.
func (e *engine) load(change *state.Change, out sdk.Output) {
	for name, load := range e.g.load {
		table := change.State.Table(name)
		for _, key := range change.Keys[name] {
			if err := load(key, table.Get(key)); err != nil {
				out.Fault("read "+name+" "+key, err, state.Name{Table: name, Key: key})
			}
		}
		if change.Before != nil || e.state == nil {
			continue
		}
		for key := range e.state.Table(name).All() {
			if table.Get(key) == nil {
				_ = load(key, nil)
			}
		}
	}
	e.state = change.State
}

// wave brings everything that is wanted up to date and reports what changed.
func (e *engine) wave(out sdk.Output) {
	w := e.g.Wave()
	changed := w.Changed
	slices.SortFunc(changed, func(a, b incr.Observed) int { return compareText(a.Name(), b.Name()) })
	for _, r := range changed {
		if s := e.watched[r]; s != nil {
			s.report(out)
		}
	}
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// faults reports functions that kept their last good results.
func (e *engine) faults(out sdk.Output) {
	for _, f := range e.g.Failures() {
		out.Fault(fmt.Sprintf("%s %v", f.Function, f.Key), f.Err, names(e.g, f.Read)...)
	}
}

// names are the rows among what was read that are rows of tables.
func names(g *graph, rows []incr.Row) []state.Name {
	var out []state.Name
	for _, r := range rows {
		if key, ok := r.Key.(string); ok && g.load[r.Table] != nil {
			out = append(out, state.Name{Table: r.Table, Key: key})
		}
	}
	return out
}

// Overtake implements sdk.Engine.
func (e *engine) Overtake(_ context.Context, change *state.Change, out sdk.Output) error {
	e.assignments.overtake(change, out)
	return nil
}

// Attach implements sdk.Engine.
func (e *engine) Attach(_ context.Context, p *sdk.Proxy, out sdk.Output) error {
	n, err := node.Parse(p.Node, p.Extensions)
	if err != nil {
		return err
	}
	c := e.connections[p.Connection]
	if c == nil {
		c = &connection{id: p.Connection, views: map[string]uint64{}}
		e.connections[p.Connection] = c
	}
	c.types = p.Types
	e.g.proxies.Set(c.id, n)
	if c.root == nil {
		c.root = incr.Observe(e.g.placement, c.id)
		e.watched[c.root] = placing{e, c}
	}
	e.wave(out)
	if _, ok := c.root.Value(); !ok {
		return fmt.Errorf("node %q can't be placed", n.ID)
	}
	placing{e, c}.report(out)
	return nil
}

// Detach implements sdk.Engine.
func (e *engine) Detach(connection uint64) {
	c := e.connections[connection]
	if c == nil {
		return
	}
	delete(e.watched, c.root)
	c.root.Close()
	e.g.proxies.Delete(connection)
	delete(e.connections, connection)
}

// Want implements sdk.Engine.
func (e *engine) Want(_ context.Context, typeURL string, view uint64, names []string, out sdk.Output) error {
	v := e.views.byID[view]
	if v == nil {
		return fmt.Errorf("view %d of %s is not known", view, typeURL)
	}
	v.want(names)
	e.wave(out)
	v.answer(names, out)
	return nil
}

// Drop implements sdk.Engine.
func (e *engine) Drop(_ string, view uint64, names []string, gone bool) {
	v := e.views.byID[view]
	if v == nil {
		return
	}
	if gone {
		v.close()
		e.views.forget(v)
		return
	}
	v.drop(names)
}

// placing reports a connection's views.
type placing struct {
	e *engine
	c *connection
}

func (p placing) report(out sdk.Output) {
	at, ok := p.c.root.Value()
	if !ok {
		return
	}
	for _, t := range p.c.types {
		id := p.e.views.find(t, at, out)
		if p.c.views[t] != id {
			p.c.views[t] = id
			out.Place(p.c.id, t, id)
		}
	}
}
