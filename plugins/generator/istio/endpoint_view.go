package istio

import (
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// endpointContent is the content of a view of load assignments: those that are wanted, by name.
type endpointContent struct {
	e     *engine
	v     *view
	key   endpointView
	wants map[string]*assignment
}

// assignment is a load assignment that is wanted: the graph says how it is made, the rows what of.
type assignment struct {
	e    *engine
	v    *view
	name string
	root *incr.Root[specKey, endpoint.Spec]
	// spec is the one that is served; guarded by assignments.
	spec endpoint.Spec
}

func (c *endpointContent) want(names []string) {
	if len(c.wants) == 0 && len(names) > 0 {
		c.e.use(c.key.Scope)
	}
	for _, n := range names {
		if c.wants[n] == nil {
			a := &assignment{e: c.e, v: c.v, name: n, root: incr.Observe(c.e.g.specs, specKey{c.key, n})}
			c.wants[n] = a
			c.e.watched[a.root] = a
		}
	}
}

func (c *endpointContent) answer(names []string, out sdk.Output) {
	for _, n := range names {
		c.wants[n].report(out)
	}
}

// report implements watcher: the spec is new.
func (a *assignment) report(out sdk.Output) {
	spec, ok := a.root.Value()
	if !ok {
		spec = endpoint.Spec{Cluster: a.name}
	}
	a.e.assignments.serve(a, spec, out)
}

func (c *endpointContent) drop(names []string) {
	for _, n := range names {
		if a := c.wants[n]; a != nil {
			delete(c.e.watched, a.root)
			a.root.Close()
			c.e.assignments.forget(a)
			delete(c.wants, n)
			if len(c.wants) == 0 {
				c.e.release(c.key.Scope)
			}
		}
	}
}

func (c *endpointContent) close() { c.drop(sortedNames(c.wants)) }
