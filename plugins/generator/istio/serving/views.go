package serving

import (
	"fmt"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/extensions"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listeners"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/placement"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/routes"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// views are those that connections were placed in and that the core has not dropped.
type views struct {
	e     *Engine
	next  uint64
	byID  map[uint64]*view
	byKey map[any]*view
	parts map[any]*part
}

// view is an equivalence class of proxies for one type. Its key is the answers that make the class.
type view struct {
	id      uint64
	key     any
	typeURL string
	content
}

// content is what a view has, by type: a set made of parts, or single resources by name.
type content interface {
	// want notes what is wanted, before a wave; names is nil for all.
	want(names []string)
	// answer reports it, after the wave.
	answer(names []string, out sdk.Output)
	drop(names []string)
	// follow says which content a proxy had before.
	follow(before content)
	close()
	// explain says what a resource was made from.
	explain(name string) (incr.Explanation, bool)
}

func newViews(e *Engine) *views {
	return &views{e: e, byID: map[uint64]*view{}, byKey: map[any]*view{}, parts: map[any]*part{}}
}

// find returns the number of the view that a placement means for a type; 0 for types that it
// doesn't serve.
func (s *views) find(typeURL string, at placement.Placed, out sdk.Output) uint64 {
	var key viewKey
	switch typeURL {
	case encode.ClusterType:
		key = at.Clusters
	case encode.EndpointType:
		key = at.Endpoints
	case encode.ListenerType:
		key = at.Listeners
	case encode.RouteType:
		key = at.Routes
	case encode.NameTableType:
		key = at.Names
	case encode.ExtensionType:
		key = at.Extensions
	default:
		return 0
	}
	v := s.byKey[key]
	if v == nil {
		v = s.add(typeURL, key)
		label, facts := key.Describe()
		out.View(typeURL, v.id, label, facts)
	}
	return v.id
}

func (s *views) add(typeURL string, key viewKey) *view {
	s.next++
	v := &view{id: s.next, key: key, typeURL: typeURL}
	v.content = s.e.contentOf(key, v)
	s.byID[v.id], s.byKey[key] = v, v
	return v
}

// follow notes that a connection goes from one view to another that nobody was told of yet.
func (s *views) follow(from, to uint64) {
	if old, v := s.byID[from], s.byID[to]; old != nil && v != nil {
		v.follow(old.content)
	}
}

func (s *views) forget(v *view) {
	delete(s.byID, v.id)
	delete(s.byKey, v.key)
}

// viewKey is one of placement.ClusterView, placement.EndpointView, placement.ListenerView,
// placement.RouteView, placement.NameView and placement.ExtensionView.
type viewKey interface {
	Describe() (label string, facts map[string]string)
}

// contentOf is what a view has, by what it depends on.
func (e *Engine) contentOf(key viewKey, v *view) content {
	switch k := key.(type) {
	case placement.ClusterView:
		return newPartView(e, v, k.Set.Scope, clusterParts(k))
	case placement.ListenerView:
		return newPartView(e, v, k.Set.Scope, listenerParts(k))
	case placement.EndpointView:
		return &endpointContent{e: e, v: v, key: k, wants: map[string]*assignment{}}
	case placement.NameView:
		return newPartView(e, v, k.Scope, []partKey{namePart(k)})
	case placement.RouteView:
		return newNamed(e, v, &k.Scope, e.from.Routes.Configurations, func(name string) routes.Key { return routes.Key{View: routes.View(k), Name: name} })
	case placement.ExtensionView:
		return newNamed(e, v, nil, e.from.Extensions.Discovered, func(name string) extensions.Discovery {
			return extensions.Discovery{View: extensions.View(k), Name: name}
		})
	}
	panic(fmt.Sprintf("no view has the key %T", key))
}

func clusterParts(k placement.ClusterView) []partKey {
	patches := k.Set.Patches
	list := []partKey{staticPart{Client: k.Set.Client.Anywhere(), Sidecar: k.Set.Scope.Sidecar, Patches: patches}, outboundPart(k.Set)}
	if k.Targets != "" || k.Ingress.Named() {
		list = append(list, inboundPart{
			Targets: k.Targets, Ingress: k.Ingress, Scope: k.Set.Scope.Narrowed(), Families: k.Set.Client.Families,
			SameCase: k.Set.Client.SameCase, Patches: patches,
		})
	}
	if k.ByName {
		list = append(list, outboundPart(k.Set.ByName()))
	}
	if patches != "" {
		list = append(list, newClusterPart{patches, k.Set.Client.Router})
	}
	return list
}

func listenerParts(k placement.ListenerView) []partKey {
	patches := k.Set.Patches
	var list []partKey
	if k.Router {
		list = []partKey{gatewayPart{Servers: k.Servers, Scope: k.Set.Scope, Proxy: k.Set.Proxy, Unprivileged: k.Unprivileged, Patches: patches}}
	} else {
		receiving := k.Set.Proxy
		receiving.Policies = k.Policies
		list = []partKey{
			fixedPart{Inbound: listeners.InboundKey{Targets: k.Targets, Ingress: k.Ingress, Proxy: receiving}, Outside: k.Outside, Patches: patches},
			listenerPart(k.Set),
		}
	}
	if patches != "" {
		list = append(list, newListenerPart{patches, k.Router})
	}
	return list
}
