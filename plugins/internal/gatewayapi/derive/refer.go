package derive

import (
	"cmp"
	"slices"
	"strings"

	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/status"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Groups of what objects refer to.
const (
	coreGroup       = ""
	networkingGroup = "networking.istio.io"
	clusterSetGroup = "multicluster.x-k8s.io"
)

// kind names a kind in its group, as references do.
type kind struct{ Group, Kind string }

var (
	gatewayKind     = kind{gatewayapi.Group, "Gateway"}
	listenerSetKind = kind{gatewayapi.Group, "ListenerSet"}
	serviceKind     = kind{coreGroup, "Service"}
	secretKind      = kind{coreGroup, "Secret"}
	configMapKind   = kind{coreGroup, "ConfigMap"}
	entryKind       = kind{networkingGroup, "ServiceEntry"}
	hostnameKind    = kind{networkingGroup, "Hostname"}
	importKind      = kind{clusterSetGroup, "ServiceImport"}
	poolKind        = kind{gatewayapi.InferenceGroup, "InferencePool"}
)

// refer returns the kind that a reference means, of which group and kind may be left out.
func refer[G, K ~string](group *G, name *K, otherwise kind) kind {
	out := otherwise
	if group != nil {
		out.Group = string(*group)
	}
	if name != nil {
		out.Kind = string(*name)
	}
	return out
}

// world is what functions of the graph read: inputs through the context that notes what was read.
type world struct {
	*graph
	c *incr.Ctx
	// asked are the Secrets and ConfigMaps that were looked for; nil: nobody wants to know.
	asked map[Name]bool
}

// serviceHost is the name of a service of the cluster.
func (w world) serviceHost(namespace, name string) string {
	return name + "." + namespace + ".svc." + w.config.Domain
}

// service returns the service of a name; nil: there is none.
func (w world) service(namespace, name string) *pb.Service {
	return w.hostIn(namespace, w.serviceHost(namespace, name))
}

// hostIn returns the service of a namespace that has a host; nil: there is none.
func (w world) hostIn(namespace, host string) *pb.Service {
	if s, ok := w.in.Services.Get(w.c, namespace+"/"+host); ok {
		return s
	}
	for _, i := range w.entriesOf.Of(w.c, namespace+"/"+host) {
		return i.Value.service(namespace, host)
	}
	return nil
}

// service is the service that a ServiceEntry makes of one of its hosts.
func (e *Entry) service(namespace, host string) *pb.Service {
	out := &pb.Service{Namespace: namespace, Host: host, Labels: e.Labels}
	for _, p := range e.Spec.Ports {
		out.Ports = append(out.Ports, &pb.Port{Number: p.Number, Name: p.Name, Protocol: p.Protocol})
	}
	return out
}

// credential is what is known of a Secret or a ConfigMap.
func (w world) credential(n Name) Credential {
	if w.asked != nil {
		w.asked[n] = true
	}
	has, known := w.in.Credentials.Get(w.c, n)
	if !known && w.config.AllCredentials {
		return Credential{Missing: true}
	}
	return has
}

// permits reports whether some ReferenceGrant lets objects of a kind in a namespace refer to
// another object. Source: Gateway API, ReferenceGrant.
func (w world) permits(from kind, namespace string, to kind, toNamespace, toName string) bool {
	by := gateway.ReferenceGrantFrom{
		Group: gateway.Group(from.Group), Kind: gateway.Kind(from.Kind), Namespace: gateway.Namespace(namespace),
	}
	return slices.ContainsFunc(w.grantsIn.Of(w.c, toNamespace), func(i incr.Item[string, *grant]) bool {
		spec := &i.Value.Spec
		return slices.Contains(spec.From, by) && slices.ContainsFunc(spec.To, func(t gateway.ReferenceGrantTo) bool {
			name := string(or(t.Name, ""))
			return kind{string(t.Group), string(t.Kind)} == to && (name == "" || name == toName)
		})
	})
}

// classOf returns the controller of a Gateway's class; false: it is none of Istio's.
func (w world) classOf(name gateway.ObjectName) (gateway.GatewayController, bool) {
	controller, builtin := classes[string(name)]
	if w.config.controller() != status.Controller && controller == status.Controller {
		builtin = false // it is another control plane's
	}
	if c, ok := w.in.Classes.Get(w.c, string(name)); ok {
		controller, builtin = c.Spec.ControllerName, true
	}
	if !builtin {
		return "", false
	}
	return w.config.known(controller)
}

// older orders objects: the first by when they were created, then by namespace and name.
func older(a, b *pb.Row) int {
	return cmp.Or(cmp.Compare(a.Created, b.Created), strings.Compare(a.Key, b.Key))
}
