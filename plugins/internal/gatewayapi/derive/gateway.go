package derive

import (
	"slices"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/status"
	"github.com/coxswain-mesh/coxswain/plugins/internal/objects"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

type (
	gatewayObject = objects.Object[gateway.GatewaySpec]
	setObject     = objects.Object[gateway.ListenerSetSpec]
	grant         = objects.Object[gateway.ReferenceGrantSpec]
)

// front is what a Gateway and the ListenerSets that belong to it make together.
type front struct {
	// servers are the derived Gateways, one for each listener that is served.
	servers []server
	// parents are what routes may belong to.
	parents []parent
	// judged says what is wrong with the Gateway, sets with each of its ListenerSets.
	judged status.Gateway
	sets   map[string]status.ListenerSet
	// unserved: its class is known, but nothing is served of it (waypoints, and gateways between
	// networks of ambient mode). plain: addresses of both kinds are told.
	unserved, plain bool
	// asked are the Secrets and ConfigMaps that it names and may have.
	asked map[Name]bool
}

// server is a derived Gateway with its one server.
type server struct {
	namespace, name string
	annotations     map[string]string
	spec            *networking.Server
	from            *pb.Row
	// deployed is the name of the Gateway if what serves it is deployed for it.
	deployed string
}

// managed reports whether what serves a Gateway is deployed for it: unless its addresses name a
// service. Source: Istio, Kubernetes Gateway API, "Manual deployment".
func managed(spec *gateway.GatewaySpec) bool {
	if len(spec.Addresses) == 1 {
		t := spec.Addresses[0].Type
		return t == nil || *t == gateway.IPAddressType
	}
	return len(spec.Addresses) == 0
}

// deployed is the name of what is deployed for a Gateway.
func deployed(g *gatewayObject, of class) string {
	if of.plainName {
		return g.Name
	}
	return g.Name + "-" + string(g.Spec.GatewayClassName)
}

// servicesOf are the hosts of the services in front of what serves a Gateway. There may be some
// even where there is a problem.
func (w world) servicesOf(g *gatewayObject, of class) (hosts []string, problem *status.Problem) {
	if managed(&g.Spec) {
		name := g.Row.Annotations[nameOverride]
		if name == "" {
			name = deployed(g, of)
		}
		return []string{w.serviceHost(g.Namespace, name)}, nil
	}
	var skipped []string
	for _, a := range g.Spec.Addresses {
		switch {
		case a.Type != nil && *a.Type != gateway.HostnameAddressType:
			skipped = append(skipped, a.Value)
		case strings.Contains(a.Value, "."):
			hosts = append(hosts, a.Value)
		default:
			hosts = append(hosts, w.serviceHost(g.Namespace, a.Value))
		}
	}
	if len(skipped) > 0 {
		return hosts, status.SkippedAddresses(skipped)
	}
	if _, has := g.Row.Annotations[serviceTypeAnnot]; has {
		return hosts, status.Deprecated(serviceTypeAnnot)
	}
	return hosts, nil
}

// deployedFor is the Gateway's name if what serves it is deployed for it.
func deployedFor(g *gatewayObject) string {
	if managed(&g.Spec) {
		return g.Name
	}
	return ""
}

// accountOf is the service account of what serves a Gateway; empty: any.
func accountOf(g *gatewayObject, of class) string {
	if !managed(&g.Spec) {
		return ""
	}
	if own := g.Row.Annotations[accountAnnotation]; own != "" {
		return own
	}
	return deployed(g, of)
}

// addFronts adds the function that makes fronts of Gateways.
func (g *graph) addFronts(graph *incr.Graph) {
	g.setsOf = incr.NewIndex(g.in.ListenerSets, "listener sets by gateway", func(_ string, s *setObject) []string {
		if refer(s.Spec.ParentRef.Group, s.Spec.ParentRef.Kind, gatewayKind) != gatewayKind {
			return nil
		}
		return []string{string(or(s.Spec.ParentRef.Namespace, gateway.Namespace(s.Namespace))) + "/" + string(s.Spec.ParentRef.Name)}
	})
	g.fronts = incr.NewFunc(graph, "listeners of gateway", nil, func(c *incr.Ctx, key string) (*front, error) {
		w := world{g, c, map[Name]bool{}}
		of, ok := g.in.Gateways.Get(c, key)
		if !ok {
			return nil, incr.Absent
		}
		controller, ok := w.classOf(of.Spec.GatewayClassName)
		if !ok {
			return nil, incr.Absent
		}
		out := w.front(of, controller)
		out.asked = w.asked
		return out, nil
	})
}

// fronting is a front that is being made.
type fronting struct {
	world
	out        *front
	of         *gatewayObject
	controller gateway.GatewayController
	class      class
	hosts      []string
	problem    *status.Problem
	// shown names the credential that is shown to backends; empty: none is.
	shown string
}

func (w world) front(of *gatewayObject, controller gateway.GatewayController) *front {
	f := &fronting{world: w, out: &front{sets: map[string]status.ListenerSet{}}, of: of, controller: controller, class: controllers[controller]}
	if f.class.remote {
		f.out.judged = status.Gateway{Remote: true, Spec: &of.Spec}
		return f.out
	}
	f.out.plain = f.class.plainName
	f.out.unserved = controller == status.MeshController || controller == status.EastWestController
	f.hosts, f.problem = w.servicesOf(of, f.class)
	f.out.judged = status.Gateway{Spec: &of.Spec, Services: f.hosts, Problem: f.problem}
	f.shown, f.out.judged.Client = w.clientCertificate(of)
	sets := f.attached()
	if len(f.hosts) == 0 && f.problem != nil {
		for _, s := range sets {
			f.out.sets[s.Row.Key] = status.ListenerSet{Parent: f.problem, NoService: true}
		}
		return f.out
	}
	if f.problem == nil {
		f.out.judged.Problem = w.parameters(of)
	}
	lost := f.findConflicts(sets)
	f.ofGateway(lost)
	for _, s := range sets {
		f.ofSet(s, lost)
	}
	return f.out
}

// attached are the ListenerSets that belong to the Gateway and may, the oldest first.
func (f *fronting) attached() []*setObject {
	var out []*setObject
	for _, i := range f.setsOf.Of(f.c, f.of.Row.Key) {
		s := i.Value
		switch {
		case !f.class.sets:
			f.out.sets[s.Row.Key] = status.ListenerSet{Refused: status.NoListenerSets(string(f.of.Spec.GatewayClassName))}
		case !f.allowsSets(s.Namespace):
			f.out.sets[s.Row.Key] = status.ListenerSet{Refused: status.ListenerSetNotAllowed()}
		default:
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b *setObject) int { return older(a.Row, b.Row) })
	return out
}

// ofGateway makes servers of the Gateway's own listeners.
func (f *fronting) ofGateway(lost conflicts) {
	for _, l := range f.of.Spec.Listeners {
		if reason, ok := lost[f.of.Row.Key+"/Gateway"][l.Name]; ok {
			f.out.judged.Listeners = append(f.out.judged.Listeners, status.Conflict(l, reason, f.config.Beyond))
			continue
		}
		made, judged := f.listener(l, owner{gatewayKind, f.of.Namespace, f.of.Row, f.of.Name}, nil)
		f.out.judged.Listeners = append(f.out.judged.Listeners, judged)
		f.serve(l, owner{gatewayKind, f.of.Namespace, f.of.Row, f.of.Name}, made, judged.Valid())
	}
}

// ofSet makes servers of a ListenerSet's listeners.
func (f *fronting) ofSet(s *setObject, lost conflicts) {
	judged := status.ListenerSet{Parent: f.problem, Services: f.hosts}
	by := owner{listenerSetKind, s.Namespace, s.Row, s.Name}
	for _, entry := range s.Spec.Listeners {
		l, portProblem := listenerOf(entry)
		if reason, ok := lost[s.Row.Key+"/ListenerSet"][l.Name]; ok {
			judged.Listeners = append(judged.Listeners, status.Conflict(l, reason, f.config.Beyond))
			continue
		}
		made, one := f.listener(l, by, portProblem)
		judged.Listeners = append(judged.Listeners, one)
		switch {
		case made == nil:
		case f.takesDatagrams(l):
			judged.Datagrams = append(judged.Datagrams, made.Port.Number)
		default:
			judged.Ports = append(judged.Ports, made.Port.Number)
		}
		if one.Valid() {
			f.serve(l, by, made, true)
		}
	}
	f.out.sets[s.Row.Key] = judged
	if slices.ContainsFunc(judged.Listeners, status.Listener.Valid) {
		f.out.judged.ListenerSets++
	}
}

// owner is the object that has a listener.
type owner struct {
	kind
	namespace string
	row       *pb.Row
	name      string
}

// takesDatagrams reports whether a listener is served for datagrams.
func (f *fronting) takesDatagrams(l gateway.Listener) bool {
	return f.config.Beyond && l.Protocol == gateway.UDPProtocolType
}

// serve adds the derived Gateway of a listener, if it is valid, and what routes may belong to.
func (f *fronting) serve(l gateway.Listener, by owner, made *networking.Server, valid bool) {
	if made == nil {
		return
	}
	if f.takesDatagrams(l) {
		f.out.judged.Datagrams = append(f.out.judged.Datagrams, made.Port.Number)
	} else {
		f.out.judged.Ports = append(f.out.judged.Ports, made.Port.Number)
	}
	if f.controller == status.MeshController || f.controller == status.EastWestController && l.Port == hbonePort {
		return // routes of waypoints are not those of Gateways
	}
	name := by.name + "~" + autogenerated + "~" + string(l.Name)
	kinds, _ := status.SupportedKinds(l, f.config.Beyond)
	f.out.parents = append(f.out.parents, parent{
		owner: Name{by.Kind, by.namespace, by.name}, internal: by.namespace + "/" + name, kinds: kinds, hosts: made.Hosts,
		hostname: string(or(l.Hostname, "")), section: l.Name, port: l.Port, protocol: l.Protocol,
	})
	if !valid {
		return
	}
	annotations := map[string]string{
		SemanticsAnnotation: semantics,
		ServiceAnnotation:   strings.Join(f.hosts, ","),
		ParentsAnnotation:   by.Kind + "/" + by.name + "/" + string(l.Name) + "." + by.namespace,
		AccountAnnotation:   accountOf(f.of, f.class),
	}
	if by.kind == listenerSetKind {
		annotations[ParentNamespaceAnnotation] = f.of.Namespace
	}
	if f.config.Beyond {
		if f.shown != "" && by.kind == gatewayKind { // those of another namespace are told of no credential
			annotations[istio.BackendCertificate] = f.shown
		}
		if l.Protocol == gateway.HTTPSProtocolType {
			annotations[istio.Misdirected] = "true"
		}
	}
	f.out.servers = append(f.out.servers, server{by.namespace, name, annotations, made, by.row, deployedFor(f.of)})
}

// listenerOf makes a listener of one of a ListenerSet. The problem says that it has no port.
func listenerOf(e gateway.ListenerEntry) (gateway.Listener, *status.Problem) {
	l := gateway.Listener(e)
	if l.Port == 0 {
		switch l.Protocol {
		case gateway.HTTPProtocolType:
			l.Port = 80
		case gateway.HTTPSProtocolType:
			l.Port = 443
		default:
			return l, status.NoPort(l.Protocol)
		}
	}
	return l, nil
}

// passesAutomatically reports whether a listener passes TLS on to the cluster that the server name
// says. Source: Istio, multi-network.
func passesAutomatically(labels map[string]string, l gateway.Listener) bool {
	if l.TLS == nil {
		return false
	}
	port := autoPassthroughTLS
	if own, ok := labels[gatewayPortLabel]; ok {
		port = own
	}
	return string(l.TLS.Options[listenerProtocol]) == autoPassthrough || strconv.Itoa(int(l.Port)) == port
}
