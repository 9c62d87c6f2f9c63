package istio

import (
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// views are those that connections were placed in and that the core has not dropped.
type views struct {
	e     *engine
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
	close()
	// explain says what a resource was made from.
	explain(name string) (incr.Explanation, bool)
}

func newViews(e *engine) *views {
	return &views{e: e, byID: map[uint64]*view{}, byKey: map[any]*view{}, parts: map[any]*part{}}
}

// find returns the number of the view that a placement means for a type; 0 for types that it doesn't serve.
func (s *views) find(typeURL string, at placed, out sdk.Output) uint64 {
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
	default:
		return 0
	}
	v := s.byKey[key]
	if v == nil {
		v = s.add(typeURL, key)
		label, facts := key.describe()
		out.View(typeURL, v.id, label, facts)
	}
	return v.id
}

func (s *views) add(typeURL string, key viewKey) *view {
	s.next++
	v := &view{id: s.next, key: key, typeURL: typeURL}
	v.content = key.content(s.e, v)
	s.byID[v.id], s.byKey[key] = v, v
	return v
}

func (s *views) forget(v *view) {
	delete(s.byID, v.id)
	delete(s.byKey, v.key)
}

// viewKey is one of clusterView, endpointView, listenerView, routeView and nameView.
type viewKey interface {
	describe() (label string, facts map[string]string)
	content(e *engine, v *view) content
}

func (k clusterView) content(e *engine, v *view) content {
	list := []partKey{staticPart(k.Set.Client.anywhere()), outboundPart(k.Set)}
	if k.Targets != "" || k.Ingress.named() {
		list = append(list, inboundPart{k.Targets, k.Ingress, k.Set.Client.Families, k.Set.Client.SameCase})
	}
	if k.ByName {
		list = append(list, outboundPart(k.Set.byName()))
	}
	return newPartView(e, v, k.Set.Scope, list)
}

func (k listenerView) content(e *engine, v *view) content {
	if k.Router {
		return newPartView(e, v, k.Set.Scope, []partKey{gatewayPart{k.Servers, k.Set.Scope, k.Set.Proxy, k.Unprivileged}})
	}
	receiving := k.Set.Proxy
	receiving.Policies = k.Policies
	return newPartView(e, v, k.Set.Scope, []partKey{fixedPart{inboundKey{k.Targets, k.Ingress, receiving}, k.Outside}, listenerPart(k.Set)})
}

func (k endpointView) content(e *engine, v *view) content {
	return &endpointContent{e: e, v: v, key: k, wants: map[string]*assignment{}}
}

func (k nameView) content(e *engine, v *view) content {
	return newPartView(e, v, k.Scope, []partKey{namePart(k)})
}

func (k routeView) content(e *engine, v *view) content {
	return &routeContent{e: e, v: v, key: k, wants: map[string]*routeWant{}}
}
