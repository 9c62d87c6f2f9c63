// Package patches finds the patches of EnvoyFilters that count for a proxy, and reads them. What
// they do is in envoyfilter.
package patches

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/envoyfilter"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// Patches are those of all proxies. Without any, nothing asks.
type Patches struct {
	rows *incr.Input[string, tables.Row[*config.EnvoyFilter]]
	mesh *mesh.Settings

	in *incr.Index[string, string, tables.Row[*config.EnvoyFilter]]
	// patch is the one of an EnvoyFilter at a place in its list.
	patch *incr.Func[patchKey, *envoyfilter.Patch]
	sets  *incr.Func[string, *envoyfilter.Set]
	// spoilt has no values: it fails for each filter chain that patches spoil.
	spoilt *incr.Func[SpoiltChain, struct{}]
}

// patchKey names a patch of an EnvoyFilter.
type patchKey struct {
	Filter string
	Index  int
}

// Keys name the patches that count for a proxy, by the resources that they may change:
// EnvoyFilters, by key, with the places of the patches in their lists (NAMESPACE/NAME#0.2,…). Empty
// without.
type Keys struct{ Clusters, Listeners, Routes, Extensions string }

// New adds the EnvoyFilters to a graph.
func New(graph *incr.Graph, t *tables.Tables, settings *mesh.Settings) *Patches {
	f := &Patches{rows: t.EnvoyFilters, mesh: settings, spoilt: newSpoilt(graph)}
	f.in = incr.NewIndex(f.rows, "envoy filters by namespace",
		func(_ string, r tables.Row[*config.EnvoyFilter]) []string { return []string{r.Value.Namespace} })
	specs := incr.NewFunc(graph, "patch of envoy filter",
		func(a, b *networking.EnvoyFilter_EnvoyConfigObjectPatch) bool { return proto.Equal(a, b) },
		func(c *incr.Ctx, k patchKey) (*networking.EnvoyFilter_EnvoyConfigObjectPatch, error) {
			r, ok := f.rows.Get(c, k.Filter)
			if !ok || k.Index >= len(r.Value.Spec.ConfigPatches) {
				return nil, incr.Absent
			}
			return r.Value.Spec.ConfigPatches[k.Index], nil
		})
	f.patch = incr.NewFunc(graph, "patch", incr.Same[*envoyfilter.Patch], func(c *incr.Ctx, k patchKey) (*envoyfilter.Patch, error) {
		p, ok := specs.Get(c, k)
		if !ok {
			return nil, incr.Absent
		}
		return envoyfilter.Parse(p)
	})
	f.sets = incr.NewFunc(graph, "patches", (*envoyfilter.Set).Equal, func(c *incr.Ctx, keys string) (*envoyfilter.Set, error) {
		return f.patchSet(c, keys), nil
	})
	return f
}

// Set is the patches that keys name, in their order.
func (f *Patches) Set(c *incr.Ctx, keys string) *envoyfilter.Set { return f.sets.Of(c, keys) }

// patchSet reads patches, in their order: by priority, those of the root namespace before others,
// the oldest first. Patches that can't be read are left out, and reported.
func (f *Patches) patchSet(c *incr.Ctx, keys string) *envoyfilter.Set {
	places := map[string][]int{}
	var filters []*config.EnvoyFilter
	for k := range config.Keys(keys).All() {
		key, list, _ := strings.Cut(k, placeMark)
		if r, ok := f.rows.Get(c, key); ok {
			filters = append(filters, r.Value)
			places[key] = parsePlaces(list)
		}
	}
	root := f.mesh.Root(c)
	slices.SortStableFunc(filters, func(a, b *config.EnvoyFilter) int {
		return cmp.Or(cmp.Compare(a.Spec.Priority, b.Spec.Priority), rank(b.Namespace == root)-rank(a.Namespace == root), a.Before(b.Meta))
	})
	var out []*envoyfilter.Patch
	for _, filter := range filters {
		for _, i := range places[filter.Key] {
			if p, ok := f.patch.Get(c, patchKey{filter.Key, i}); ok {
				out = append(out, p)
			}
		}
	}
	return envoyfilter.NewSet(out)
}

// rank is 1 for what comes first.
func rank(first bool) int {
	if first {
		return 1
	}
	return 0
}

const (
	placeMark      = "#"
	placeSeparator = "."
)

func parsePlaces(list string) []int {
	var out []int
	for _, s := range strings.Split(list, placeSeparator) {
		if n, err := strconv.Atoi(s); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// Of name the patches that count for a proxy, whose workload has labels.
func (f *Patches) Of(c *incr.Ctx, n *node.Node, labels map[string]string) Keys {
	list := f.in.Of(c, n.Namespace)
	if root := f.mesh.Root(c); root != n.Namespace {
		list = slices.Concat(list, f.in.Of(c, root))
	}
	var out Keys
	for _, i := range list {
		if one := i.Value.Value; one.For(n.Namespace, labels) {
			out.add(one, func(patch int) bool { return one.Admits(patch, n.Metadata.Version, n.Metadata.Texts.Are) })
		}
	}
	return out
}

// add adds the patches of an EnvoyFilter that a proxy is admitted to.
func (k *Keys) add(f *config.EnvoyFilter, admits func(patch int) bool) {
	var clusters, listeners, routes, extensions []string
	for i, p := range f.Spec.ConfigPatches {
		if !admits(i) {
			continue
		}
		at := strconv.Itoa(i)
		switch p.ApplyTo {
		case networking.EnvoyFilter_CLUSTER:
			clusters = append(clusters, at)
		case networking.EnvoyFilter_EXTENSION_CONFIG:
			extensions = append(extensions, at)
		case networking.EnvoyFilter_ROUTE_CONFIGURATION, networking.EnvoyFilter_VIRTUAL_HOST, networking.EnvoyFilter_HTTP_ROUTE:
			if side := p.GetMatch().GetContext(); side != networking.EnvoyFilter_SIDECAR_INBOUND {
				routes = append(routes, at)
			}
			if side := p.GetMatch().GetContext(); side == networking.EnvoyFilter_SIDECAR_INBOUND || side == networking.EnvoyFilter_ANY {
				listeners = append(listeners, at) // routes to the workload stand in its listener
			}
		case networking.EnvoyFilter_BOOTSTRAP, networking.EnvoyFilter_INVALID:
		default:
			listeners = append(listeners, at)
		}
	}
	join(&k.Clusters, f.Key, clusters)
	join(&k.Listeners, f.Key, listeners)
	join(&k.Routes, f.Key, routes)
	join(&k.Extensions, f.Key, extensions)
}

func join(to *string, key string, places []string) {
	if len(places) == 0 {
		return
	}
	if *to != "" {
		*to += ","
	}
	*to += key + placeMark + strings.Join(places, placeSeparator)
}

// Side is the one that patches know a proxy's own resources by, apart from what a sidecar's
// workload receives.
func Side(router bool) envoyfilter.Context {
	if router {
		return networking.EnvoyFilter_GATEWAY
	}
	return networking.EnvoyFilter_SIDECAR_OUTBOUND
}

// Naming are the EnvoyFilters, by key, of which a patch is such a one among those that keys name.
func (f *Patches) Naming(keys string, is func(*networking.EnvoyFilter_EnvoyConfigObjectPatch) bool) []string {
	var out []string
	for k := range config.Keys(keys).All() {
		key, places, _ := strings.Cut(k, placeMark)
		root := incr.Observe(f.rows, key)
		r, ok := root.Value()
		root.Close()
		if ok &&
			slices.ContainsFunc(parsePlaces(places), func(i int) bool { return i < len(r.Value.Spec.ConfigPatches) && is(r.Value.Spec.ConfigPatches[i]) }) {
			out = append(out, key)
		}
	}
	return out
}
