package istio

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
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
	seats       *seats
	// lastSeat is the number of the seat that was made last.
	lastSeat    uint64
	views       *views
	assignments *assignments
	// watched are what a wave may change, by root.
	watched map[incr.Observed]watched
	watches uint64
	holds   *holds
	// reported are the faults that were reported last.
	reported []fault
	// scopes in use, and by how many views.
	scopes map[scope.Scope]int
	// aliases are clusters by other ids that proxies say.
	aliases map[string]string
}

// watcher reports what a root of it has become.
type watcher interface {
	report(out sdk.Output)
}

// watched is a watcher of a root, and its number: reports are in the order in which the roots were wanted.
type watched struct {
	watcher
	number uint64
}

func (e *engine) watch(r incr.Observed, w watcher) {
	e.watches++
	e.watched[r] = watched{w, e.watches}
}

func (e *engine) unwatch(r incr.Observed) { delete(e.watched, r) }

// connection is an attached proxy.
type connection struct {
	id uint64
	// seat is its number in the graph, which may be that of another connection before.
	seat  uint64
	key   seatKey
	types []string
	root  *incr.Root[uint64, placed]
	// views that it was placed in, by type.
	views map[string]uint64
	// since is when it ended, if only its seat is kept.
	since time.Time
}

func newEngine(c Config) *engine {
	g := newGraph(c)
	e := &engine{
		g:           g,
		connections: map[uint64]*connection{},
		seats:       newSeats(),
		assignments: newAssignments(g.tables.Reader),
		watched:     map[incr.Observed]watched{},
		scopes:      map[scope.Scope]int{},
		holds:       newHolds(),
		aliases:     c.ClusterAliases,
	}
	e.views = newViews(e)
	return e
}

var (
	_ sdk.Engine = (*engine)(nil)
	_ sdk.Rester = (*engine)(nil)
)

// Commit implements sdk.Engine.
func (e *engine) Commit(_ context.Context, change *state.Change, out sdk.Output) error {
	e.clear(time.Now())
	e.load(change, out)
	touched := e.assignments.commit(change, out)
	e.wave(out)
	e.assignments.report(touched, out)
	e.faults(out)
	return nil
}

// load stages the rows that changed.
func (e *engine) load(change *state.Change, out sdk.Output) {
	for name, load := range e.g.tables.Load {
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
	var changed []watched
	for _, r := range e.g.Wave().Changed {
		if w, ok := e.watched[r]; ok {
			changed = append(changed, w)
		}
	}
	slices.SortFunc(changed, func(a, b watched) int { return cmp.Compare(a.number, b.number) })
	e.holds.notice(e.g)
	for _, w := range changed {
		w.report(out)
	}
	e.holds.review(out)
}

// Rest implements sdk.Rester: it lets go of what the graph keeps for views that come back soon.
func (e *engine) Rest(_ context.Context, out sdk.Output) bool {
	e.clear(time.Now())
	for range 3 {
		e.wave(out)
	}
	return e.g.Trim()
}

// Overtake implements sdk.Engine.
func (e *engine) Overtake(_ context.Context, change *state.Change, out sdk.Output) error {
	e.assignments.overtake(change, out)
	return nil
}

// Attach implements sdk.Engine.
func (e *engine) Attach(_ context.Context, p *sdk.Proxy, out sdk.Output) error {
	key := keyOf(p)
	if e.connections[p.Connection] == nil && e.sit(p, key) {
		placing{e, e.connections[p.Connection]}.report(out)
		return nil
	}
	n, err := node.Parse(p.Node, p.Extensions)
	if err != nil {
		return err
	}
	n.Metadata.ClusterID = cmp.Or(e.aliases[n.Metadata.ClusterID], n.Metadata.ClusterID)
	c := e.connections[p.Connection]
	if c == nil {
		e.lastSeat++
		c = &connection{id: p.Connection, seat: e.lastSeat, views: map[string]uint64{}}
		e.connections[p.Connection] = c
	}
	c.types, c.key = p.Types, key
	e.g.proxies.Set(c.seat, n)
	if c.root == nil {
		c.root = incr.Observe(e.g.placement, c.seat)
		e.watch(c.root, placing{e, c})
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
	delete(e.connections, connection)
	e.vacate(c)
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
	e.newFaults(out)
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
		e.empty()
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
		if was := p.c.views[t]; was != id {
			p.e.views.follow(was, id)
			p.c.views[t] = id
			out.Place(p.c.id, t, id)
		}
	}
}
