package config

import (
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Annotations of what was derived of objects of the Gateway API, as istiod has them.
const (
	serviceAnnotation   = "internal.istio.io/gateway-service"
	namespaceAnnotation = "internal.istio.io/parent-namespace"
	routeAnnotation     = "internal.istio.io/route-semantics"
	parentsAnnotation   = "internal.istio.io/parents"
	accountAnnotation   = "internal.istio.io/service-account-name"
)

// derived reports whether a row was derived: nobody can give an object such a name.
func derived(row *pb.Row) bool { return strings.Contains(row.Key, "~") }

// Front says who serves a Gateway that was derived of one of the Gateway API: the workloads behind
// these services of a namespace or, where there is none of them, those of the namespace that the
// selector selects. The zero value is that of Istio's own Gateways.
type Front struct {
	Namespace string
	Hosts     []string
	// Managed: the proxies are deployed for the Gateway, in its namespace.
	Managed bool
	// Shown names the credential that its proxies show to backends; empty: none.
	Shown string
	// Misdirected: requests for another server of the port, by a connection for this one, are
	// answered with 421.
	Misdirected bool
}

// Same reports whether two say the same.
func (f Front) Same(o Front) bool {
	return f.Namespace == o.Namespace && slices.Equal(f.Hosts, o.Hosts) && f.Managed == o.Managed && f.Shown == o.Shown && f.Misdirected == o.Misdirected
}

// Given reports whether the Gateway was derived.
func (f Front) Given() bool { return len(f.Hosts) > 0 }

func frontOf(row *pb.Row, namespace string) Front {
	hosts := row.Annotations[serviceAnnotation]
	if hosts == "" || !derived(row) {
		return Front{}
	}
	if parent := row.Annotations[namespaceAnnotation]; parent != "" {
		namespace = parent
	}
	return Front{
		Namespace: namespace, Hosts: strings.Split(hosts, ","), Managed: row.Annotations[accountAnnotation] != "",
		Shown: row.Annotations[istio.BackendCertificate], Misdirected: row.Annotations[istio.Misdirected] != "",
	}
}

// isRoute reports whether a VirtualService was derived of a route of the Gateway API, whose rules
// have that API's meaning.
func isRoute(row *pb.Row) bool { return derived(row) && row.Annotations[routeAnnotation] == "gateway" }

// isPolicy reports whether a DestinationRule was derived of policies of the Gateway API.
func isPolicy(row *pb.Row) bool { return derived(row) && row.Annotations[parentsAnnotation] != "" }

// isTLSRoute reports whether a VirtualService was derived of a TLSRoute.
func isTLSRoute(row *pb.Row) bool {
	return isRoute(row) && strings.HasPrefix(row.Annotations[parentsAnnotation], "TLSRoute/")
}

// isUDPRoute reports whether a VirtualService was derived of a UDPRoute: its routes for connections
// are for datagrams.
func isUDPRoute(row *pb.Row) bool {
	return isRoute(row) && strings.HasPrefix(row.Annotations[parentsAnnotation], "UDPRoute/")
}

// isIngress reports whether a VirtualService has the meaning of an Ingress. As in istiod,
// everybody's may.
func isIngress(row *pb.Row) bool { return row.Annotations[routeAnnotation] == "ingress" }
