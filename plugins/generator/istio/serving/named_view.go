package serving

import (
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/held"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// namedContent is the content of a view whose resources are asked for by name, one by one. Every
// name has an answer; without fields it says that there is no such resource.
type namedContent[K comparable] struct {
	e *Engine
	v *view
	// from makes the resource of a key; key is that of a name.
	from *incr.Func[K, [][]byte]
	key  func(name string) K
	// scope that the resources need; nil where they need none.
	scope *scope.Scope
	wants map[string]*named[K]
	// before is the content that a proxy had before this one.
	before *namedContent[K]
}

// named is a resource that is wanted.
type named[K comparable] struct {
	in   *namedContent[K]
	v    *view
	name string
	root *incr.Root[K, [][]byte]
	// asked: it was asked for and has not been reported since.
	asked bool
	// told is what was reported last.
	told [][]byte
}

func newNamed[K comparable](e *Engine, v *view, s *scope.Scope, from *incr.Func[K, [][]byte], key func(name string) K) *namedContent[K] {
	return &namedContent[K]{e: e, v: v, from: from, key: key, scope: s, wants: map[string]*named[K]{}}
}

func (x *namedContent[K]) want(names []string) {
	if len(x.wants) == 0 && len(names) > 0 && x.scope != nil {
		x.e.use(*x.scope)
	}
	for _, n := range names {
		w := x.wants[n]
		if w == nil {
			w = &named[K]{in: x, v: x.v, name: n, root: incr.Observe(x.from, x.key(n))}
			x.wants[n] = w
			x.e.watch(w.root, w)
		}
		w.asked = true
	}
}

// answer reports those names that the wave has not.
func (x *namedContent[K]) answer(names []string, out sdk.Output) {
	for _, n := range names {
		if w := x.wants[n]; w.asked {
			w.report(out)
		}
	}
}

func (w *named[K]) report(out sdk.Output) {
	w.asked = false
	fields, _ := w.root.Value()
	refused := w.in.e.holds.refused[resourceName{w.v.typeURL, w.name}]
	if refused && w.v.typeURL == encode.RouteType {
		fields = held.FillRoutes(fields, w.before(), route.VirtualHostsField)
	}
	if fields == nil && refused {
		fields = w.before()
		w.in.e.holds.hold(w, fields != nil)
	} else {
		w.in.e.holds.hold(w, false)
	}
	w.told = fields
	out.Change(w.v.typeURL, w.v.id, nil, []sdk.Resource{{Name: w.name, Fields: fields}}, nil)
}

// before is what a proxy had under the name before it came here.
func (w *named[K]) before() [][]byte {
	if w.told == nil && w.in.before != nil {
		if was := w.in.before.wants[w.name]; was != nil {
			return was.told
		}
	}
	return w.told
}

// review implements holder.
func (w *named[K]) review(out sdk.Output) {
	if !w.in.e.holds.refused[resourceName{w.v.typeURL, w.name}] {
		w.report(out)
	}
}

// follow implements content.
func (x *namedContent[K]) follow(before content) {
	if b, ok := before.(*namedContent[K]); ok && len(x.wants) == 0 && b != x {
		x.before = b
		b.before = nil // one step is enough: what b keeps it has told
	}
}

func (x *namedContent[K]) drop(names []string) {
	for _, n := range names {
		if w := x.wants[n]; w != nil {
			x.e.unwatch(w.root)
			x.e.holds.hold(w, false)
			w.root.Close()
			delete(x.wants, n)
			if len(x.wants) == 0 && x.scope != nil {
				x.e.release(*x.scope)
			}
		}
	}
}

func (x *namedContent[K]) close() { x.drop(sortedNames(x.wants)) }

func (x *namedContent[K]) explain(name string) (incr.Explanation, bool) {
	return incr.Explain(x.from, x.key(name), explainLimit)
}
