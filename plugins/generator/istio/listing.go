package istio

import (
	"bytes"
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/envoyfilter"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// listing is a short list of resources that patches may change. Each is patched by a function of its own, so that one that fails keeps its
// own last good version, and the others go on.
type listing[K comparable] struct {
	name string
	// plain is the list without patches. What could never be made has no body, and is left out.
	plain func(c *incr.Ctx, k K) []sdk.Resource
	// patches is where a key has those that count.
	patches func(k *K) *string
	// patch is false for a resource that is taken away.
	patch func(c *incr.Ctx, set *envoyfilter.Set, k K, r sdk.Resource) ([]byte, bool)
}

// listed is one resource of a list.
type listed[K comparable] struct {
	List K
	Name string
}

func (l listing[K]) add(g *graph) *incr.Func[K, []sdk.Resource] {
	var list *incr.Func[K, []sdk.Resource]
	bare := func(k K) K {
		*l.patches(&k) = ""
		return k
	}
	patched := incr.NewFunc(g.Graph, "patched of "+l.name, bytes.Equal, func(c *incr.Ctx, k listed[K]) ([]byte, error) {
		all := list.Of(c, bare(k.List))
		i := slices.IndexFunc(all, func(r sdk.Resource) bool { return r.Name == k.Name })
		if i < 0 {
			return nil, incr.Absent
		}
		body, kept := l.patch(c, g.patches.Set(c, *l.patches(&k.List)), k.List, all[i])
		if !kept {
			return nil, incr.Absent
		}
		return body, nil
	})
	list = incr.NewFunc(g.Graph, l.name, sameResources, func(c *incr.Ctx, k K) ([]sdk.Resource, error) {
		if *l.patches(&k) == "" {
			return slices.DeleteFunc(l.plain(c, k), func(r sdk.Resource) bool { return r.Body == nil }), nil
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
