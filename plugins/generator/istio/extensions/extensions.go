// Package extensions finds the filters that users bring along (WasmPlugin, TrafficExtension) which
// count for a proxy. What they are is in extension.
package extensions

import (
	"bytes"
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/extension"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/patches"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/plugins/internal/modules"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	"google.golang.org/protobuf/proto"
)

// Extensions are the filters that users bring along, of all proxies: which of them count for one,
// and what they are.
type Extensions struct {
	tables  *tables.Tables
	mesh    *mesh.Settings
	patches *patches.Patches

	trafficIn *incr.Index[string, string, tables.Row[*config.Extension]]
	pluginsIn *incr.Index[string, string, tables.Row[*config.Extension]]
	extension *incr.Func[string, *extension.Extension]
	lists     *incr.Func[listKey, extension.List]
	// Discovered are configurations of filters that proxies ask for by name; nil where there is
	// none.
	Discovered *incr.Func[Discovery, [][]byte]
}

// listKey is the extensions of a proxy on one side of it.
type listKey struct {
	Keys   config.Keys
	Server bool
	// Alone: there is no agent.
	Alone bool
}

// View is what configurations of filters depend on of the proxies that ask for them: their
// extensions, and the patches that may add some.
type View struct {
	Extensions config.Keys
	Patches    string
	// Direct: there is no agent between them and the control plane.
	Direct bool
}

// Discovery is a configuration that is asked for by name.
type Discovery struct {
	View View
	Name string
}

// New adds the extensions to a graph. Patches may add configurations of filters.
func New(graph *incr.Graph, t *tables.Tables, settings *mesh.Settings, patches *patches.Patches) *Extensions {
	x := &Extensions{tables: t, mesh: settings, patches: patches}
	namespace := func(_ string, r tables.Row[*config.Extension]) []string { return []string{r.Value.Namespace} }
	x.trafficIn = incr.NewIndex(x.tables.TrafficExtensions, "traffic extensions by namespace", namespace)
	x.pluginsIn = incr.NewIndex(x.tables.WasmPlugins, "wasm plugins by namespace", namespace)
	x.extension = incr.NewFunc(graph, "extension", incr.Same[*extension.Extension], func(c *incr.Ctx, key string) (*extension.Extension, error) {
		rows := x.tables.TrafficExtensions
		table, name := config.ExtensionRow(key)
		if table == config.WasmPlugins {
			rows = x.tables.WasmPlugins
		}
		r, ok := rows.Get(c, name)
		if !ok {
			return nil, incr.Absent
		}
		return extension.New(r.Value)
	})
	x.lists = incr.NewFunc(graph, "extensions", extension.List.Equal, func(c *incr.Ctx, k listKey) (extension.List, error) {
		return extension.NewList(x.named(c, k.Keys), k.Server, k.Alone), nil
	})
	x.Discovered = incr.NewFunc(graph, "extension configuration", sameFields, func(c *incr.Ctx, k Discovery) ([][]byte, error) {
		return x.discover(c, k), nil
	})
	return x
}

func sameFields(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) }

// List are the extensions that keys name, on one side of a proxy; alone: it has no agent.
func (x *Extensions) List(c *incr.Ctx, keys config.Keys, server, alone bool) extension.List {
	return x.lists.Of(c, listKey{keys, server, alone})
}

func (x *Extensions) named(c *incr.Ctx, keys config.Keys) []*extension.Extension {
	var out []*extension.Extension
	for key := range keys.All() {
		if e, ok := x.extension.Get(c, key); ok {
			out = append(out, e)
		}
	}
	return out
}

// discover is the configuration of a name; patches come first.
func (x *Extensions) discover(c *incr.Ctx, k Discovery) [][]byte {
	if k.View.Patches != "" {
		if m := x.patches.Set(c, k.View.Patches).Extension(k.Name); m != nil {
			return [][]byte{encode.Patched(m)}
		}
	}
	for key := range k.View.Extensions.All() {
		if !config.NamesExtension(k.Name, key) {
			continue // it is not read, for what is refused of this one is no fault of that
		}
		if e, ok := x.extension.Get(c, key); ok && e.Name == k.Name && e.Config != nil {
			if k.View.Direct {
				return [][]byte{encode.Bytes(x.direct(c, e))}
			}
			return [][]byte{encode.Bytes(e.Config)}
		}
	}
	return nil
}

// direct is the configuration of a filter for proxies without an agent.
func (x *Extensions) direct(c *incr.Ctx, e *extension.Extension) proto.Message {
	is, ok := x.tables.Modules.Get(c, e.Module())
	if !ok {
		return e.Direct
	}
	module := is.Value.Module
	has, ok := x.tables.Modules.Get(c, modules.BytesKey(module.SHA256))
	if !ok {
		return e.Direct
	}
	if holding := e.Holding(module, has.Value.Bytes); holding != nil {
		return holding
	}
	return e.Direct
}

// View is what counts of a proxy, whose workload has labels.
func (x *Extensions) View(c *incr.Ctx, n *node.Node, labels map[string]string, patches string) View {
	v := View{Extensions: x.Of(c, n, labels), Patches: patches}
	v.Direct = v.Extensions != "" && !n.Metadata.Client.From.Served()
	return v
}

// Of are the keys of the extensions that count for a workload: those of its own namespace
// before those of the root namespace, the oldest first.
func (x *Extensions) Of(c *incr.Ctx, n *node.Node, labels map[string]string) config.Keys {
	list := x.in(c, n.Namespace)
	if root := x.mesh.Root(c); root != n.Namespace {
		list = append(list, x.in(c, root)...)
	}
	var keys []string
	for _, e := range list {
		if e.For(n.Namespace, labels) {
			keys = append(keys, e.Key)
		}
	}
	return config.KeysOf(keys)
}

func (x *Extensions) in(c *incr.Ctx, namespace string) []*config.Extension {
	return tables.InAge(slices.Concat(x.trafficIn.Of(c, namespace), x.pluginsIn.Of(c, namespace)))
}
