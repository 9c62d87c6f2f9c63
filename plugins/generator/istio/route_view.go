package istio

import (
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// routeContent is the content of a view of route configurations: those that are wanted, by name. Every name has one.
type routeContent struct {
	e     *engine
	v     *view
	key   routeView
	wants map[string]*routeWant
}

// routeWant is a route configuration that is wanted.
type routeWant struct {
	v    *view
	name string
	root *incr.Root[routeKey, []byte]
}

func (r *routeContent) want(names []string) {
	if len(r.wants) == 0 && len(names) > 0 {
		r.e.use(r.key.Scope)
	}
	for _, n := range names {
		if r.wants[n] == nil {
			w := &routeWant{v: r.v, name: n, root: incr.Observe(r.e.g.route, routeKey{r.key, n})}
			r.wants[n] = w
			r.e.watched[w.root] = w
		}
	}
}

func (r *routeContent) answer(names []string, out sdk.Output) {
	for _, n := range names {
		r.wants[n].report(out)
	}
}

func (w *routeWant) report(out sdk.Output) {
	body, _ := w.root.Value()
	out.Change(w.v.typeURL, w.v.id, nil, []sdk.Resource{{Name: w.name, Body: body}}, nil)
}

func (r *routeContent) drop(names []string) {
	for _, n := range names {
		if w := r.wants[n]; w != nil {
			delete(r.e.watched, w.root)
			w.root.Close()
			delete(r.wants, n)
			if len(r.wants) == 0 {
				r.e.release(r.key.Scope)
			}
		}
	}
}

func (r *routeContent) close() { r.drop(sortedNames(r.wants)) }
