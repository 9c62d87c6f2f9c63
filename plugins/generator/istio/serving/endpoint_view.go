package serving

import (
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/assignments"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/clusters"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/placement"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// endpointContent is the content of a view of load assignments: those that are wanted, by name.
type endpointContent struct {
	e     *Engine
	v     *view
	key   placement.EndpointView
	wants map[string]*assignment
}

// assignment is a load assignment that is wanted: the graph says how it is made, the rows what of.
type assignment struct {
	e    *Engine
	name string
	root *incr.Root[clusters.SpecKey, endpoint.Spec]
	// asked: it was asked for and has not been reported since; of those who run Want alone.
	asked bool
	made  *assignments.Assignment
}

func (c *endpointContent) want(names []string) {
	if len(c.wants) == 0 && len(names) > 0 {
		c.e.use(c.key.Scope)
	}
	for _, n := range names {
		a := c.wants[n]
		if a == nil {
			a = &assignment{
				e: c.e, name: n, made: assignments.For(c.v.id, n),
				root: incr.Observe(c.e.from.Clusters.Specs, clusters.SpecKey{View: clusters.EndpointView(c.key), Cluster: n}),
			}
			c.wants[n] = a
			c.e.watch(a.root, a)
		}
		a.asked = true
	}
}

// answer reports those names that the wave has not.
func (c *endpointContent) answer(names []string, out sdk.Output) {
	for _, n := range names {
		if a := c.wants[n]; a.asked {
			a.report(out)
		}
	}
}

// report implements watcher: the spec is new, or it was asked for.
func (a *assignment) report(out sdk.Output) {
	spec, ok := a.root.Value()
	if !ok {
		spec = endpoint.Spec{Cluster: a.name}
	}
	a.e.assignments.Serve(a.made, spec, a.asked, out)
	a.asked = false
}

// follow implements content: an assignment is held by itself.
func (c *endpointContent) follow(content) {}

func (c *endpointContent) drop(names []string) {
	for _, n := range names {
		if a := c.wants[n]; a != nil {
			c.e.unwatch(a.root)
			a.root.Close()
			c.e.assignments.Forget(a.made)
			delete(c.wants, n)
			if len(c.wants) == 0 {
				c.e.release(c.key.Scope)
			}
		}
	}
}

func (c *endpointContent) close() { c.drop(sortedNames(c.wants)) }
