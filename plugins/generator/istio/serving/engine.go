// Package serving is the side of the generator towards the core: which connections are in which
// views, what of these is wanted, and what of that has changed.
package serving

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/assignments"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/clusters"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/extensions"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listeners"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/nametables"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/patches"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/placement"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/routes"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Engine keeps what is wanted up to date. What is wanted are roots of the graph; after each wave
// those that changed are reported. Load assignments alone are made outside of it (assignments),
// which Overtake shares.
type Engine struct {
	from        From
	state       *state.State
	connections map[uint64]*connection
	retained    *retained
	// lastSlot is the number of the slot that was made last.
	lastSlot    uint64
	views       *views
	assignments *assignments.Assignments
	// watched are what a wave may change, by root.
	watched map[incr.Observed]watched
	watches uint64
	holds   *holds
	regexes *regexes
	// reported are the faults that were reported last.
	reported []fault
	// scopes in use, and by how many views.
	scopes map[scope.Scope]int
}

// watcher reports what a root of it has become.
type watcher interface {
	report(out sdk.Output)
}

// watched is a watcher of a root, and its number: reports are in the order in which the roots were
// wanted.
type watched struct {
	watcher
	number uint64
}

func (e *Engine) watch(r incr.Observed, w watcher) {
	e.watches++
	e.watched[r] = watched{w, e.watches}
}

func (e *Engine) unwatch(r incr.Observed) { delete(e.watched, r) }

// connection is an attached proxy.
type connection struct {
	id uint64
	// slot is its number in the graph, which may be that of another connection before.
	slot  uint64
	key   proxyKey
	types []string
	root  *incr.Root[uint64, placement.Placed]
	// views that it was placed in, by type.
	views map[string]uint64
	// stock is what stockOf says of its node.
	stock string
	// since is when it ended, if it is retained.
	since time.Time
}

// From is what is served, and the graph that computes it.
type From struct {
	Graph      *incr.Graph
	Tables     *tables.Tables
	Scopes     *scope.Scopes
	Placement  *placement.Placement
	Clusters   *clusters.Clusters
	Listeners  *listeners.Listeners
	Routes     *routes.Routes
	NameTables *nametables.Tables
	Extensions *extensions.Extensions
	Patches    *patches.Patches
	// Additions are what patches add.
	Additions *patches.Additions
	// ClusterAliases are clusters by other ids that proxies say.
	ClusterAliases map[string]string
}

// New makes an engine, of which nobody wants anything yet.
func New(from From) *Engine {
	e := &Engine{
		from:        from,
		connections: map[uint64]*connection{},
		retained:    newRetained(),
		assignments: assignments.New(from.Tables.Reader),
		watched:     map[incr.Observed]watched{},
		scopes:      map[scope.Scope]int{},
		holds:       newHolds(),
		regexes:     newRegexes(),
	}
	e.views = newViews(e)
	return e
}

// Kept is how much an engine keeps.
type Kept struct {
	// Nodes are the graph's.
	Nodes int
	// Watched are roots, Scopes those in use, Services those of which there are endpoints or load
	// assignments.
	Watched, Scopes, Views, Parts, Services int
	// Retained are those that have ended, ByKey those of them that can be found.
	Retained, ByKey int
}

// Kept counts what the engine keeps.
func (e *Engine) Kept() Kept {
	return Kept{
		Nodes: e.from.Graph.Nodes(), Watched: len(e.watched), Scopes: len(e.scopes), Views: len(e.views.byID), Parts: len(e.views.parts),
		Services: e.assignments.Services(), Retained: e.retained.left.Len(), ByKey: len(e.retained.by),
	}
}

var (
	_ sdk.Engine = (*Engine)(nil)
	_ sdk.Rester = (*Engine)(nil)
)

// Commit implements sdk.Engine.
func (e *Engine) Commit(_ context.Context, change *state.Change, out sdk.Output) error {
	e.clear(time.Now())
	e.load(change, out)
	touched := e.assignments.Commit(change, out)
	e.wave(out)
	e.assignments.Report(touched, out)
	e.faults(out)
	e.regexes.warn(out)
	return nil
}

// load stages the rows that changed.
func (e *Engine) load(change *state.Change, out sdk.Output) {
	for name, load := range e.from.Tables.Load {
		table := change.State.Table(name)
		for _, key := range change.Keys[name] {
			at, row := state.Name{Table: name, Key: key}, table.Get(key)
			if err := load(key, row); err != nil {
				out.Fault("read "+name+" "+key, err, at)
				continue
			}
			e.regexes.row(at, row)
		}
		if change.Before != nil || e.state == nil {
			continue
		}
		for key := range e.state.Table(name).All() {
			if table.Get(key) == nil {
				_ = load(key, nil)
				e.regexes.row(state.Name{Table: name, Key: key}, nil)
			}
		}
	}
	e.state = change.State
}

// wave brings everything that is wanted up to date and reports what changed.
func (e *Engine) wave(out sdk.Output) {
	var changed []watched
	for _, r := range e.from.Graph.Wave().Changed {
		if w, ok := e.watched[r]; ok {
			changed = append(changed, w)
		}
	}
	slices.SortFunc(changed, func(a, b watched) int { return cmp.Compare(a.number, b.number) })
	e.holds.notice(e.from.Graph)
	for _, w := range changed {
		w.report(out)
	}
	e.holds.review(out)
}

// Rest implements sdk.Rester: it lets go of what the graph keeps for views that come back soon.
func (e *Engine) Rest(_ context.Context, out sdk.Output) bool {
	e.clear(time.Now())
	for range 3 {
		e.wave(out)
	}
	return e.from.Graph.Trim()
}

// Overtake implements sdk.Engine.
func (e *Engine) Overtake(_ context.Context, change *state.Change, out sdk.Output) error {
	e.assignments.Overtake(change, out)
	return nil
}

// Attach implements sdk.Engine.
func (e *Engine) Attach(_ context.Context, p *sdk.Proxy, out sdk.Output) error {
	key := keyOf(p)
	if e.connections[p.Connection] == nil && e.resume(p, key) {
		c := e.connections[p.Connection]
		placing{e, c}.report(out)
		e.regexes.proxy(p.Connection, c.stock)
		e.regexes.warn(out)
		return nil
	}
	n, err := node.Parse(p.Node, p.Extensions)
	if err != nil {
		return err
	}
	n.Metadata.ClusterID = cmp.Or(e.from.ClusterAliases[n.Metadata.ClusterID], n.Metadata.ClusterID)
	c := e.connections[p.Connection]
	if c == nil {
		e.lastSlot++
		c = &connection{id: p.Connection, slot: e.lastSlot, views: map[string]uint64{}}
		e.connections[p.Connection] = c
	}
	c.types, c.key = p.Types, key
	c.stock = stockOf(n)
	e.regexes.proxy(p.Connection, c.stock)
	e.from.Placement.Proxies.Set(c.slot, n)
	if c.root == nil {
		c.root = incr.Observe(e.from.Placement.At, c.slot)
		e.watch(c.root, placing{e, c})
	}
	e.wave(out)
	if _, ok := c.root.Value(); !ok {
		return fmt.Errorf("node %q can't be placed", n.ID)
	}
	placing{e, c}.report(out)
	e.regexes.warn(out)
	return nil
}

// Detach implements sdk.Engine.
func (e *Engine) Detach(connection uint64) {
	c := e.connections[connection]
	if c == nil {
		return
	}
	delete(e.connections, connection)
	e.regexes.gone(connection)
	e.retain(c)
}

// Want implements sdk.Engine.
func (e *Engine) Want(_ context.Context, typeURL string, view uint64, names []string, out sdk.Output) error {
	v := e.views.byID[view]
	if v == nil {
		return fmt.Errorf("view %d of %s is not known", view, typeURL)
	}
	v.want(names)
	e.wave(out)
	v.answer(names, out)
	e.newFaults(out)
	return nil
}

// Drop implements sdk.Engine.
func (e *Engine) Drop(_ string, view uint64, names []string, gone bool) {
	v := e.views.byID[view]
	if v == nil {
		return
	}
	if gone {
		v.close()
		e.views.forget(v)
		e.empty()
		return
	}
	v.drop(names)
}

// placing reports a connection's views.
type placing struct {
	e *Engine
	c *connection
}

func (p placing) report(out sdk.Output) {
	at, ok := p.c.root.Value()
	if !ok {
		return
	}
	for _, t := range p.c.types {
		id := p.e.views.find(t, at, out)
		if was := p.c.views[t]; was != id {
			p.e.views.follow(was, id)
			p.c.views[t] = id
			out.Place(p.c.id, t, id)
		}
	}
}
