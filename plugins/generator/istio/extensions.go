package istio

import (
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/extension"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// userExtensions: which filters that users bring along count for a proxy, and what they are.
type userExtensions struct {
	trafficIn      *incr.Index[string, string, tables.Row[*config.Extension]]
	pluginsIn      *incr.Index[string, string, tables.Row[*config.Extension]]
	userExtension  *incr.Func[string, *extension.Extension]
	extensionLists *incr.Func[extensionListKey, extension.List]
	// discovered are configurations of filters that proxies ask for by name; nil where there is none.
	discovered *incr.Func[discoveryKey, [][]byte]
}

// extensionListKey is the extensions of a proxy (keys, joined) on one side of it.
type extensionListKey struct {
	Keys   string
	Server bool
}

// extensionView is what configurations of filters depend on of the proxies that ask for them: their extensions, and the patches that may
// add some.
type extensionView struct {
	Extensions, Patches string
	// Direct: there is no agent between them and the control plane.
	Direct bool
}

type discoveryKey struct {
	View extensionView
	Name string
}

func (g *graph) addExtensions() {
	namespace := func(_ string, r tables.Row[*config.Extension]) []string { return []string{r.Value.Namespace} }
	g.trafficIn = incr.NewIndex(g.tables.TrafficExtensions, "traffic extensions by namespace", namespace)
	g.pluginsIn = incr.NewIndex(g.tables.WasmPlugins, "wasm plugins by namespace", namespace)
	g.userExtension = incr.NewFunc(g.Graph, "extension", incr.Same[*extension.Extension], func(c *incr.Ctx, key string) (*extension.Extension, error) {
		rows := g.tables.TrafficExtensions
		table, name := config.ExtensionRow(key)
		if table == config.WasmPlugins {
			rows = g.tables.WasmPlugins
		}
		r, ok := rows.Get(c, name)
		if !ok {
			return nil, incr.Absent
		}
		return extension.New(r.Value)
	})
	g.extensionLists = incr.NewFunc(g.Graph, "extensions", extension.List.Equal, func(c *incr.Ctx, k extensionListKey) (extension.List, error) {
		return extension.NewList(g.extensionsNamed(c, k.Keys), k.Server), nil
	})
	g.discovered = incr.NewFunc(g.Graph, "extension configuration", equalFields, func(c *incr.Ctx, k discoveryKey) ([][]byte, error) {
		return g.discover(c, k), nil
	})
}

func (g *graph) extensionsNamed(c *incr.Ctx, keys string) []*extension.Extension {
	var out []*extension.Extension
	for _, key := range tables.SplitKeys(keys) {
		if e, ok := g.userExtension.Get(c, key); ok {
			out = append(out, e)
		}
	}
	return out
}

// discover is the configuration of a name; patches come first.
func (g *graph) discover(c *incr.Ctx, k discoveryKey) [][]byte {
	if k.View.Patches != "" {
		if m := g.sets.Of(c, k.View.Patches).Extension(k.Name); m != nil {
			return [][]byte{encode.Patched(m)}
		}
	}
	for _, e := range g.extensionsNamed(c, k.View.Extensions) {
		if e.Name == k.Name && e.Config != nil {
			if k.View.Direct {
				return [][]byte{encode.Bytes(e.Direct)}
			}
			return [][]byte{encode.Bytes(e.Config)}
		}
	}
	return nil
}

// extensionView is what counts of a proxy.
func (g *graph) extensionView(c *incr.Ctx, n *node.Node, labels map[string]string, patches string) extensionView {
	v := extensionView{Extensions: g.extensionsOf(c, n, labels), Patches: patches}
	v.Direct = v.Extensions != "" && !n.Metadata.Client.From.Served()
	return v
}

// extensionsOf are the keys of the extensions that count for a workload: those of its own namespace
// before those of the root namespace, the oldest first.
func (g *graph) extensionsOf(c *incr.Ctx, n *node.Node, labels map[string]string) string {
	list := g.extensionsIn(c, n.Namespace)
	if root := g.mesh.Root(c); root != n.Namespace {
		list = append(list, g.extensionsIn(c, root)...)
	}
	var keys []string
	for _, e := range list {
		if e.For(n.Namespace, labels) {
			keys = append(keys, e.Key)
		}
	}
	return strings.Join(keys, ",")
}

func (g *graph) extensionsIn(c *incr.Ctx, namespace string) []*config.Extension {
	return tables.InAge(slices.Concat(g.trafficIn.Of(c, namespace), g.pluginsIn.Of(c, namespace)))
}
