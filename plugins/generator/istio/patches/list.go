package patches

import (
	"bytes"
	"slices"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// List is a short list of resources that patches may change. Each is patched by a function of its
// own, so that one that fails keeps its own last good version, and the others go on.
type List[K comparable] struct {
	Name string
	// Plain is the list without patches. What could never be made has no body, and is left out.
	Plain func(c *incr.Ctx, k K) []sdk.Resource
	// Patches is where a key has those that count.
	Patches func(k *K) *string
	// Patch patches a resource by those that keys name; false: it is taken away.
	Patch func(c *incr.Ctx, keys string, k K, r sdk.Resource) ([]byte, bool)
}

// listed is one resource of a list.
type listed[K comparable] struct {
	List K
	Name string
}

// SameResources reports whether two lists have the same names and bodies.
func SameResources(a, b []sdk.Resource) bool {
	return slices.EqualFunc(a, b, func(x, y sdk.Resource) bool { return x.Name == y.Name && bytes.Equal(x.Body, y.Body) })
}

// Add adds the list to a graph, as a function of its key.
func (l List[K]) Add(graph *incr.Graph) *incr.Func[K, []sdk.Resource] {
	var list *incr.Func[K, []sdk.Resource]
	bare := func(k K) K {
		*l.Patches(&k) = ""
		return k
	}
	patched := incr.NewFunc(graph, "patched of "+l.Name, bytes.Equal, func(c *incr.Ctx, k listed[K]) ([]byte, error) {
		all := list.Of(c, bare(k.List))
		i := slices.IndexFunc(all, func(r sdk.Resource) bool { return r.Name == k.Name })
		if i < 0 {
			return nil, incr.Absent
		}
		body, kept := l.Patch(c, *l.Patches(&k.List), k.List, all[i])
		if !kept {
			return nil, incr.Absent
		}
		return body, nil
	})
	list = incr.NewFunc(graph, l.Name, SameResources, func(c *incr.Ctx, k K) ([]sdk.Resource, error) {
		if *l.Patches(&k) == "" {
			return slices.DeleteFunc(l.Plain(c, k), func(r sdk.Resource) bool { return r.Body == nil }), nil
		}
		var out []sdk.Resource
		for _, r := range list.Of(c, bare(k)) {
			if body, ok := patched.Get(c, listed[K]{k, r.Name}); ok {
				out = append(out, sdk.Resource{Name: r.Name, Body: body})
			}
		}
		return out, nil
	})
	return list
}
