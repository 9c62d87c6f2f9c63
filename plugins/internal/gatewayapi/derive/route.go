package derive

import (
	"slices"
	"strings"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/status"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
)

// mesh is what VirtualServices call the sidecars of the mesh.
const mesh = "mesh"

// parent is what a route may belong to: a listener, or the mesh.
type parent struct {
	// owner is the Gateway or ListenerSet that has the listener.
	owner Name
	// internal is the derived Gateway, NAMESPACE/NAME, or mesh.
	internal string
	kinds    []gateway.RouteGroupKind
	// hosts are those of its server, NAMESPACE/HOST; hostname is the listener's.
	hosts    []string
	hostname string
	section  gateway.SectionName
	port     gateway.PortNumber
	protocol gateway.ProtocolType
}

// meshParent takes routes of all kinds.
var meshParent = parent{internal: mesh, kinds: []gateway.RouteGroupKind{
	status.RouteKind("HTTPRoute"), status.RouteKind("GRPCRoute"), status.RouteKind("TCPRoute"), status.RouteKind("TLSRoute"),
}}

// binding is a route at a parent.
type binding struct {
	parent
	ref gateway.ParentReference
	// kind is that of what the reference names.
	kind     kind
	denied   *status.Problem
	waypoint string
	// others are the hostnames of other listeners at the same port, for the same protocol.
	others []string
}

func (b *binding) mesh() bool { return b.internal == mesh }

// bindings are what a route's references to parents mean. Those that mean nothing here are left
// out: they may be for others.
func (w world) bindings(r *Route) []binding {
	var out []binding
	for _, ref := range r.Parents() {
		of := refer(ref.Group, ref.Kind, gatewayKind)
		namespace := string(or(ref.Namespace, gateway.Namespace(r.Namespace)))
		var candidates []parent
		switch of {
		case gatewayKind:
			candidates = w.parentsOf(Name{of.Kind, namespace, string(ref.Name)}, namespace+"/"+string(ref.Name))
		case listenerSetKind:
			candidates = w.parentsOfSet(Name{of.Kind, namespace, string(ref.Name)})
		case serviceKind, entryKind:
			if w.otherWaypoint(of, namespace, string(ref.Name)) {
				continue
			}
			candidates = []parent{meshParent}
		}
		if w.unserved(r) { // of no listener more can be said than of another
			candidates = candidates[:min(1, len(candidates))]
		}
		for i, p := range candidates {
			b := binding{parent: p, ref: ref, kind: of}
			b.denied, b.waypoint = w.allowed(r, &b, namespace)
			b.others = othersAt(candidates, i)
			out = append(out, b)
		}
	}
	slices.SortStableFunc(out, func(a, b binding) int {
		return strings.Compare(status.ParentText(a.ref, r.Namespace), status.ParentText(b.ref, r.Namespace))
	})
	return out
}

// unserved reports whether nobody serves a route: one for datagrams, as far as istiod goes.
func (w world) unserved(r *Route) bool { return r.UDP != nil && !w.config.Beyond }

// parentsOf are the listeners of an owner, of the front of the Gateway with a key.
func (w world) parentsOf(of Name, key string) (out []parent) {
	f, ok := w.fronts.Get(w.c, key)
	if !ok {
		return nil
	}
	for _, p := range f.parents {
		if p.owner == of {
			out = append(out, p)
		}
	}
	return out
}

func (w world) parentsOfSet(of Name) []parent {
	s, ok := w.in.ListenerSets.Get(w.c, of.Key())
	if !ok {
		return nil
	}
	return w.parentsOf(of, string(or(s.Spec.ParentRef.Namespace, gateway.Namespace(s.Namespace)))+"/"+string(s.Spec.ParentRef.Name))
}

// othersAt are the hostnames of the other listeners at the same port, for the same protocol.
func othersAt(list []parent, at int) (out []string) {
	for i, p := range list {
		if i != at && p.port == list[at].port && p.protocol == list[at].protocol && p.hostname != list[at].hostname {
			out = append(out, p.hostname)
		}
	}
	return out
}

// allowed says why a route doesn't belong to a parent that it refers to, and, of the mesh's, what
// keeps waypoints from using it.
func (w world) allowed(r *Route, b *binding, namespace string) (*status.Problem, string) {
	if w.unserved(r) {
		return status.KindUnserved(r.Kind), ""
	}
	waypoint := ""
	if b.mesh() {
		labels, found := w.labelsOf(b.kind, namespace, string(b.ref.Name))
		if !found {
			what := "service"
			if b.kind == entryKind {
				what = "service entry"
			}
			return status.NoParent("parent %s: %q not found", what, b.ref.Name), "parent not found"
		}
		own, known := w.in.Namespaces.Get(w.c, namespace)
		if !hasWaypoint(labels) && known && !hasWaypoint(own) {
			waypoint = "istio.io/use-waypoint label missing from parent and parent namespace; in ambient mode, route will not be respected"
		}
	} else if denied := listens(r, b); denied != nil {
		return denied, ""
	}
	if !slices.ContainsFunc(b.kinds, func(k gateway.RouteGroupKind) bool {
		return string(k.Kind) == r.Kind && string(or(k.Group, gatewayapi.Group)) == gatewayapi.Group
	}) {
		return status.KindNotAllowed(gatewayapi.Group + "/v1/" + r.Kind), waypoint
	}
	return nil, waypoint
}

// listens says why a listener is not for a route: another one is meant, or it has other hosts.
func listens(r *Route, b *binding) *status.Problem {
	if port := or(b.ref.Port, 0); port != 0 && port != b.port {
		return status.NoParent("port %v not found", port)
	}
	if section := or(b.ref.SectionName, ""); section != "" && section != b.section {
		return status.NoParent("sectionName %q not found", section)
	}
	host := false
	for _, own := range r.hostnames() {
		for _, h := range b.hosts {
			namespace, name, _ := strings.Cut(h, "/")
			if !istio.Overlaps(name, own) {
				continue
			}
			if host = true; namespace == "*" || namespace == r.Namespace {
				return nil
			}
		}
	}
	if host {
		return status.NamespaceNotAllowed(b.hostname, r.Namespace)
	}
	return status.NoHostname(b.hostname)
}

// labelsOf are the labels of a service or ServiceEntry; false: there is none.
func (w world) labelsOf(of kind, namespace, name string) (map[string]string, bool) {
	if of == entryKind {
		if e, ok := w.in.Entries.Get(w.c, namespace+"/"+name); ok {
			return e.Labels, true
		}
		return nil, false
	}
	if s := w.service(namespace, name); s != nil {
		return s.Labels, true
	}
	return nil, false
}

// Labels of ambient mode. Source: Istio, "Resource Labels".
const (
	useWaypoint          = "istio.io/use-waypoint"
	useWaypointNamespace = "istio.io/use-waypoint-namespace"
)

func hasWaypoint(labels map[string]string) bool {
	name := labels[useWaypoint]
	return name != "" && !strings.EqualFold(name, "none")
}

// otherWaypoint reports whether a service has a waypoint of another controller, whose business its
// routes are.
func (w world) otherWaypoint(of kind, namespace, name string) bool {
	labels, found := w.labelsOf(of, namespace, name)
	if !found {
		return false
	}
	if _, own := labels[useWaypoint]; !own {
		labels, _ = w.in.Namespaces.Get(w.c, namespace)
	}
	if !hasWaypoint(labels) {
		return false
	}
	in := namespace
	if other := labels[useWaypointNamespace]; other != "" {
		in = other
	}
	g, ok := w.in.Gateways.Get(w.c, in+"/"+labels[useWaypoint])
	if !ok {
		return false
	}
	class, ok := w.in.Classes.Get(w.c, string(g.Spec.GatewayClassName))
	return ok && class.Spec.ControllerName != status.MeshController && class.Spec.ControllerName != status.Controller
}

// isolated reports whether requests for a host belong to another listener of the same port, whose
// hostname says more. Source: Gateway API, "Listener isolation".
func (b *binding) isolated(host string) bool {
	if b.hostname != "" && !istio.IsWildcard(b.hostname) {
		return false
	}
	if b.hostname != "" && !istio.Overlaps(host, b.hostname) {
		return true
	}
	return slices.ContainsFunc(b.others, func(other string) bool {
		return len(b.hostname) <= len(other) && other != "" && istio.Covers(other, host)
	})
}

// meshHosts are the hosts of the service or ServiceEntry that a reference names.
func (w world) meshHosts(b *binding, own string) []string {
	namespace := string(or(b.ref.Namespace, gateway.Namespace(own)))
	if b.kind != entryKind {
		return []string{w.serviceHost(namespace, string(b.ref.Name))}
	}
	if e, ok := w.in.Entries.Get(w.c, namespace+"/"+string(b.ref.Name)); ok {
		return e.Spec.Hosts
	}
	return nil
}

// served are the bindings that are not denied, in the order of the derived Gateways.
func served(list []binding) []binding {
	out := slices.DeleteFunc(slices.Clone(list), func(b binding) bool { return b.denied != nil })
	slices.SortStableFunc(out, func(a, b binding) int { return strings.Compare(a.internal, b.internal) })
	return out
}
