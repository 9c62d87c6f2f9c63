package derive

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/status"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// translation is a route whose rules are being translated. grants: what it refers to in other
// namespaces must be granted.
type translation struct {
	world
	route  *Route
	grants bool
}

func wrong(message string) *status.Problem {
	return &status.Problem{Reason: status.InvalidDestination, Message: message}
}

// destination translates a reference to a backend. Where the problem leaves out the backend alone
// there is a destination that leads nowhere.
func (t *translation) destination(ref gateway.BackendRef) (*networking.Destination, *status.Problem) {
	of := refer(ref.Group, ref.Kind, serviceKind)
	namespace, name := string(or(ref.Namespace, gateway.Namespace(t.route.Namespace))), string(ref.Name)
	if t.grants && namespace != t.route.Namespace && !t.permits(kind{gatewayKind.Group, t.route.Kind}, t.route.Namespace, of, namespace, name) {
		return &networking.Destination{}, status.NotPermitted(name, namespace, t.route.Kind, t.route.Namespace)
	}
	host, found := "", false
	switch of {
	case serviceKind:
		if strings.Contains(name, ".") {
			return nil, wrong("service name invalid; the name of the Service must be used, not the hostname.")
		}
		host, found = t.serviceHost(namespace, name), t.service(namespace, name) != nil
	case hostnameKind:
		if ref.Namespace != nil {
			return nil, wrong("namespace may not be set with Hostname type")
		}
		host, found = name, t.hostIn(namespace, name) != nil
	case importKind:
		host, found = t.serviceHost(namespace, name), t.service(namespace, name) != nil
		if t.config.ClusterSetHosts {
			host = name + "." + namespace + ".svc.clusterset.local"
		}
	case poolKind:
		if t.route.UDP != nil { // what models answer are requests
			return &networking.Destination{}, status.BackendKind(ref)
		}
		return t.pool(namespace, name)
	default:
		return &networking.Destination{}, status.BackendKind(ref)
	}
	if ref.Port == nil {
		return nil, wrong("port is required in backendRef")
	}
	out := &networking.Destination{Host: host, Port: &networking.PortSelector{Number: uint32(*ref.Port)}}
	if !found {
		return out, status.NoBackend(host)
	}
	if t.route.UDP != nil && !t.takesDatagrams(of, namespace, name, uint32(*ref.Port)) {
		return &networking.Destination{}, status.NoDatagrams(host, uint32(*ref.Port))
	}
	return out, nil
}

// takesDatagrams reports whether a backend has a port for UDP. What an imported service has is
// known where it is (found is enough).
func (t *translation) takesDatagrams(of kind, namespace, name string, number uint32) bool {
	var s *pb.Service
	switch of {
	case serviceKind:
		s = t.service(namespace, name)
	case hostnameKind:
		s = t.hostIn(namespace, name)
	}
	return s == nil || slices.ContainsFunc(s.Ports, func(p *pb.Port) bool {
		return p.Number == number && strings.EqualFold(p.Protocol, string(gateway.UDPProtocolType))
	})
}

// pool leads to the service of a pool of servers of models, if some registry has it.
func (t *translation) pool(namespace, name string) (*networking.Destination, *status.Problem) {
	if strings.Contains(name, ".") {
		return nil, wrong("InferencePool.Name invalid; the name of the InferencePool must be used, not the hostname.")
	}
	s := t.service(namespace, poolService(name))
	if s == nil || len(s.Ports) == 0 {
		return &networking.Destination{}, status.NoBackend(name)
	}
	return &networking.Destination{Host: s.Host, Port: &networking.PortSelector{Number: s.Ports[0].Number}}, nil
}

// Lengths of the names of pools' services. Source: Istio, Gateway API Inference Extension.
const (
	poolHash    = 8
	longestName = 63
)

// poolService is the name of a pool's service.
func poolService(name string) string {
	sum := sha256.Sum256([]byte(name))
	hash := "-ip-" + hex.EncodeToString(sum[:])[:poolHash]
	return name[:min(len(name), longestName-len(hash))] + hash
}

// backend is a reference to a backend with a weight that is not zero.
type backend[F any] struct {
	gateway.BackendRef
	filters []F
}

// weighted are the references that count, total is the sum of all weights.
func weighted[R, F any](refs []R, of func(R) backend[F]) (out []backend[F], total int32) {
	for _, r := range refs {
		b := of(r)
		if n := or(b.Weight, 1); n != 0 {
			out = append(out, b)
			total += n
		}
	}
	return out, total
}

// share is the weight of a destination: a single one has none.
func share(ref gateway.BackendRef, among int) int32 {
	if among == 1 {
		return 0
	}
	return or(ref.Weight, 1)
}

// nowhere is where connections go that have no backend. Source: Istio; clients are refused.
func nowhere() []*networking.RouteDestination {
	return []*networking.RouteDestination{{Destination: &networking.Destination{
		Host: "internal.cluster.local", Subset: "zero-weight", Port: &networking.PortSelector{Number: 65535},
	}}}
}

// forwarded translates the backends of a rule for connections. A problem of one leaves out that one
// alone, or the rule (done is false).
func (t *translation) forwarded(refs []gateway.BackendRef) (out []*networking.RouteDestination, problem *status.Problem, done bool) {
	list, total := weighted(refs, func(r gateway.BackendRef) backend[struct{}] { return backend[struct{}]{BackendRef: r} })
	if total == 0 {
		return nowhere(), nil, true
	}
	for _, b := range list {
		to, wrong := t.destination(b.BackendRef)
		if wrong != nil {
			if problem = wrong; !wrong.Left() {
				return nil, wrong, false
			}
		}
		out = append(out, &networking.RouteDestination{Destination: to, Weight: share(b.BackendRef, len(list))})
	}
	return out, problem, true
}
