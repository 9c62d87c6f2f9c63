// Package derive makes Istio's Gateways, VirtualServices and DestinationRules of objects of the
// Gateway API, with the names and annotations that istiod gives them, and says of each object what
// is wrong with it.
//
// It is a graph of functions (sdk/incr): what an object becomes is computed again when something
// that it was made from changes. gateway.go and listener.go make servers of listeners, route.go
// finds out to which of them a route belongs, http.go, grpc.go and stream.go translate its rules,
// piece.go joins the routes of one host, and policy.go makes DestinationRules.
package derive

import (
	networking "istio.io/api/networking/v1alpha3"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	experimental "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/status"
	"github.com/coxswain-mesh/coxswain/plugins/internal/objects"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Config is what holds for all objects.
type Config struct {
	// Domain is the DNS domain of the mesh's services.
	Domain string
	// ClusterSetHosts: ServiceImports mean NAME.NAMESPACE.svc.clusterset.local.
	ClusterSetHosts bool
	// AllCredentials: Secrets and ConfigMaps that are not among the inputs are missing. Otherwise
	// they are asked for (Derived.Asked), and taken for right until something is known of them.
	AllCredentials bool
	// Controller is the controllerName of classes that are ours; empty: Istio's. With another one
	// the class istio is there only as an object.
	Controller gateway.GatewayController
	// Statuses: what is to be said in objects' statuses is wanted.
	Statuses bool
	// Beyond: what istiod doesn't serve is served, too.
	Beyond bool
}

// controller is the name by which statuses know us.
func (c Config) controller() gateway.GatewayController {
	if c.Controller == "" {
		return status.Controller
	}
	return c.Controller
}

// known is the controller of Istio's that a controllerName stands for; false: it is none of ours.
func (c Config) known(name gateway.GatewayController) (gateway.GatewayController, bool) {
	switch {
	case name == c.controller():
		return status.Controller, true
	case name == status.Controller:
		return name, false
	}
	_, ours := controllers[name]
	return name, ours
}

// Inputs are the objects, and what they refer to. Keys are NAMESPACE/NAME, but for those of classes
// (NAME), services (NAMESPACE/HOST), namespaces (NAME), routes, policies and credentials.
type Inputs struct {
	Classes      *incr.Input[string, *objects.Object[gateway.GatewayClassSpec]]
	Gateways     *incr.Input[string, *objects.Object[gateway.GatewaySpec]]
	ListenerSets *incr.Input[string, *objects.Object[gateway.ListenerSetSpec]]
	Routes       *incr.Input[Name, *Route]
	Grants       *incr.Input[string, *objects.Object[gateway.ReferenceGrantSpec]]
	Policies     *incr.Input[Name, *Policy]

	Services   *incr.Input[string, *pb.Service]
	Entries    *incr.Input[string, *Entry]
	Namespaces *incr.Input[string, map[string]string]
	// Credentials are what is known of Secrets and ConfigMaps (see Config.AllCredentials).
	Credentials *incr.Input[Name, Credential]

	// told are, of a Secret or ConfigMap, its row and the one that says that it is missing.
	told map[Name][2]*pb.Row
}

// Name names an object: its kind, as Service, and where it is.
type Name struct{ Kind, Namespace, Name string }

// Compare orders names.
func (n Name) Compare(o Name) int {
	for _, pair := range [][2]string{{n.Kind, o.Kind}, {n.Namespace, o.Namespace}, {n.Name, o.Name}} {
		if pair[0] != pair[1] {
			if pair[0] < pair[1] {
				return -1
			}
			return 1
		}
	}
	return 0
}

// Key returns NAMESPACE/NAME.
func (n Name) Key() string { return n.Namespace + "/" + n.Name }

// Entry is a ServiceEntry, as far as routes and policies refer to it.
type Entry struct {
	Labels map[string]string
	Spec   *networking.ServiceEntry
}

// Credential is what is known of a Secret or a ConfigMap.
type Credential struct {
	// Missing: it is known that there is none.
	Missing bool
	// Pair and Roots say why it can't be used as a certificate with its key, or as roots; empty: it
	// can.
	Pair, Roots string
}

// NewInputs adds inputs to a graph.
func NewInputs(g *incr.Graph) *Inputs {
	return &Inputs{
		Classes:      incr.NewInput[string](g, "gateway classes", objects.Same[gateway.GatewayClassSpec]),
		Gateways:     incr.NewInput[string](g, "gateways of the Gateway API", objects.Same[gateway.GatewaySpec]),
		ListenerSets: incr.NewInput[string](g, "listener sets", objects.Same[gateway.ListenerSetSpec]),
		Routes:       incr.NewInput[Name](g, "routes of the Gateway API", sameRoute),
		Grants:       incr.NewInput[string](g, "reference grants", objects.Same[gateway.ReferenceGrantSpec]),
		Policies:     incr.NewInput[Name](g, "policies for backends", samePolicy),
		Services:     incr.NewInput[string, *pb.Service](g, "services", nil),
		Entries:      incr.NewInput[string, *Entry](g, "service entries", nil),
		Namespaces:   incr.NewInput[string](g, "namespaces", sameLabels),
		Credentials:  incr.NewInput[Name](g, "credentials", incr.Same[Credential]),
		told:         map[Name][2]*pb.Row{},
	}
}

func sameLabels(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}

// Route is a route of one of the kinds: the spec of its kind is set.
type Route struct {
	Name
	Row  *pb.Row
	HTTP *gateway.HTTPRouteSpec
	GRPC *gateway.GRPCRouteSpec
	TCP  *gateway.TCPRouteSpec
	TLS  *gateway.TLSRouteSpec
	UDP  *gateway.UDPRouteSpec
}

func sameRoute(a, b *Route) bool { return objects.SameRow(a.Row, b.Row) }

// Parents are what the route says that it belongs to.
func (r *Route) Parents() []gateway.ParentReference {
	switch {
	case r.HTTP != nil:
		return r.HTTP.ParentRefs
	case r.GRPC != nil:
		return r.GRPC.ParentRefs
	case r.TCP != nil:
		return r.TCP.ParentRefs
	case r.UDP != nil:
		return r.UDP.ParentRefs
	}
	return r.TLS.ParentRefs
}

// backends are those of the route's rules; none of a UDPRoute, to which no policy for backends
// applies.
func (r *Route) backends() (out []gateway.BackendObjectReference) {
	switch {
	case r.HTTP != nil:
		for _, rule := range r.HTTP.Rules {
			for _, b := range rule.BackendRefs {
				out = append(out, b.BackendObjectReference)
			}
		}
	case r.GRPC != nil:
		for _, rule := range r.GRPC.Rules {
			for _, b := range rule.BackendRefs {
				out = append(out, b.BackendObjectReference)
			}
		}
	case r.TCP != nil:
		for _, rule := range r.TCP.Rules {
			for _, b := range rule.BackendRefs {
				out = append(out, b.BackendObjectReference)
			}
		}
	case r.TLS != nil:
		for _, rule := range r.TLS.Rules {
			for _, b := range rule.BackendRefs {
				out = append(out, b.BackendObjectReference)
			}
		}
	}
	return out
}

// hostnames are those of the route; none: any.
func (r *Route) hostnames() []string {
	var list []gateway.Hostname
	switch {
	case r.HTTP != nil:
		list = r.HTTP.Hostnames
	case r.GRPC != nil:
		list = r.GRPC.Hostnames
	case r.TLS != nil:
		list = r.TLS.Hostnames
	}
	out := make([]string, 0, len(list))
	for _, h := range list {
		out = append(out, string(h))
	}
	if len(out) == 0 {
		return []string{"*"}
	}
	return out
}

// Policy is a policy for backends of one of the kinds: the spec of its kind is set.
type Policy struct {
	Name
	Row     *pb.Row
	TLS     *gateway.BackendTLSPolicySpec
	Traffic *experimental.BackendTrafficPolicySpec
}

func samePolicy(a, b *Policy) bool { return objects.SameRow(a.Row, b.Row) }

// or returns what a pointer points at, or the default.
func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
