package derive

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/status"
)

// listener makes the server of a listener; nil where there can be none. What is wrong with it is in
// the judgement.
func (f *fronting) listener(l gateway.Listener, by owner, portProblem *status.Problem) (*networking.Server, status.Listener) {
	judged := status.Listener{Of: l, Port: portProblem, Datagrams: f.config.Beyond}
	tls, problem := f.tls(l, by)
	judged.TLS = problem
	judged.Protocol = f.protocol(l.Protocol)
	judged.Expected = f.unexpected(l)
	if tls == nil && problem == nil && (l.Protocol == gateway.HTTPSProtocolType || l.Protocol == gateway.TLSProtocolType) {
		judged.NoTLS = by.kind == listenerSetKind
		return nil, judged
	}
	return &networking.Server{
		Port:  &networking.Port{Name: "default", Number: uint32(l.Port), Protocol: string(l.Protocol)},
		Hosts: f.hostsOf(l, by.namespace),
		Tls:   tls,
	}, judged
}

// protocol says that a listener's protocol is none that is served.
func (f *fronting) protocol(p gateway.ProtocolType) *status.Problem {
	switch p {
	case gateway.HTTPProtocolType, gateway.HTTPSProtocolType, gateway.TLSProtocolType, gateway.TCPProtocolType:
		return nil
	case gateway.UDPProtocolType:
		if f.config.Beyond {
			return nil
		}
	case hbone:
		if f.controller == status.MeshController || f.controller == status.EastWestController {
			return nil
		}
		return status.OnlyWaypoints(p)
	}
	return status.Unsupported(p)
}

// unexpected says that a listener isn't what its class is for. It is served all the same.
func (f *fronting) unexpected(l gateway.Listener) *status.Problem {
	mode := gateway.TLSModeTerminate
	if l.TLS != nil {
		mode = or(l.TLS.Mode, mode)
	}
	switch {
	case f.controller == status.MeshController && (l.Port != hbonePort || l.Protocol != hbone):
		return status.NotWaypoint()
	case f.controller != status.EastWestController:
		return nil
	case l.Port == hbonePort && l.Protocol == hbone && l.TLS != nil && mode == gateway.TLSModeTerminate:
		return nil
	case l.Port != hbonePort && l.Protocol == gateway.TLSProtocolType && l.TLS != nil && mode == gateway.TLSModePassthrough:
		return nil
	}
	return status.NotEastWest()
}

// hostsOf are the hosts of a listener's server, NAMESPACE/HOST: of routes in the namespaces that it
// allows. Where it allows none the server is there all the same, for no route.
func (f *fronting) hostsOf(l gateway.Listener, namespace string) []string {
	var out []string
	for _, n := range f.namespaces(l.AllowedRoutes, namespace) {
		out = append(out, n+"/"+string(or(l.Hostname, "*")))
	}
	if len(out) == 0 {
		return []string{"~/" + string(or(l.Hostname, "*"))}
	}
	return out
}

// namespaces are those whose routes may belong to a listener; "*": all.
func (f *fronting) namespaces(allowed *gateway.AllowedRoutes, own string) []string {
	if allowed == nil || allowed.Namespaces == nil || or(allowed.Namespaces.From, gateway.NamespacesFromSame) == gateway.NamespacesFromSame {
		return []string{own}
	}
	if *allowed.Namespaces.From == gateway.NamespacesFromAll || allowed.Namespaces.Selector == nil {
		return []string{"*"}
	}
	selector, err := metav1.LabelSelectorAsSelector(allowed.Namespaces.Selector)
	if err != nil {
		return nil
	}
	var out []string
	for _, i := range f.in.Namespaces.All(f.c) {
		if selector.Matches(namespaceLabels(i.Key, i.Value)) {
			out = append(out, i.Key)
		}
	}
	slices.Sort(out)
	return out
}

// nameLabel is a label that each namespace has. Source: Kubernetes, Well-Known Labels.
const nameLabel = "kubernetes.io/metadata.name"

// namespaceLabels are a namespace's labels with that of its name.
func namespaceLabels(name string, own map[string]string) labels.Set {
	out := labels.Set{nameLabel: name}
	for k, v := range own {
		if k != nameLabel {
			out[k] = v
		}
	}
	return out
}

// allowsSets reports whether ListenerSets of a namespace may belong to the Gateway.
func (f *fronting) allowsSets(namespace string) bool {
	allowed := f.of.Spec.AllowedListeners
	if allowed == nil || allowed.Namespaces == nil {
		return false
	}
	switch or(allowed.Namespaces.From, gateway.NamespacesFromSelector) {
	case gateway.NamespacesFromAll:
		return true
	case gateway.NamespacesFromSame:
		return namespace == f.of.Namespace
	case gateway.NamespacesFromSelector:
	default:
		return false
	}
	if allowed.Namespaces.Selector == nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(allowed.Namespaces.Selector)
	own, known := f.in.Namespaces.Get(f.c, namespace)
	return err == nil && known && selector.Matches(namespaceLabels(namespace, own))
}
