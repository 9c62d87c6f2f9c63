// Package gatewayapi knows the kinds of the Kubernetes Gateway API: their tables and their
// versions. Package objects says how the spec of an object stands in a row.
//
// Package derive makes Istio's resources of such rows, package status says what is to be said of
// each object. Source: sigs.k8s.io/gateway-api.
package gatewayapi

import (
	"slices"

	gateway "sigs.k8s.io/gateway-api/apis/v1"
	experimental "sigs.k8s.io/gateway-api/apisx/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/objects"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Groups of the API.
const (
	Group = gateway.GroupName
	// ExperimentalGroup has kinds that may change or go.
	ExperimentalGroup = experimental.GroupName
	// InferenceGroup has pools of servers of models.
	InferenceGroup = "inference.networking.k8s.io"
)

// Tables of the kinds that are read.
const (
	GatewayClass         = Group + "/GatewayClass"
	Gateway              = Group + "/Gateway"
	ListenerSet          = Group + "/ListenerSet"
	HTTPRoute            = Group + "/HTTPRoute"
	GRPCRoute            = Group + "/GRPCRoute"
	TCPRoute             = Group + "/TCPRoute"
	TLSRoute             = Group + "/TLSRoute"
	UDPRoute             = Group + "/UDPRoute"
	ReferenceGrant       = Group + "/ReferenceGrant"
	BackendTLSPolicy     = Group + "/BackendTLSPolicy"
	BackendTrafficPolicy = ExperimentalGroup + "/XBackendTrafficPolicy"
)

// Classes of Gateways of Istio's ambient mode. Source: Istio, ambient mode.
const (
	WaypointClass = "istio-waypoint"
	EastWestClass = "istio-east-west"
)

// Kind is a kind of the API, Object an object of one.
type (
	Kind          = objects.Kind
	Object[S any] = objects.Object[S]
)

// Decode reads a row.
func Decode[S any](row *pb.Row) (*Object[S], error) { return objects.Decode[S](row) }

// Same reports whether two objects say the same, SameRow whether two rows do, at the same place.
func Same[S any](a, b *Object[S]) bool { return objects.Same(a, b) }

// SameRow is explained at Same.
func SameRow(a, b *pb.Row) bool { return objects.SameRow(a, b) }

// all is never changed. ReferenceGrants are not in it: package kinds reads them by themselves.
var all = []Kind{
	{Table: GatewayClass, Versions: []string{"v1", "v1beta1"}, Cluster: true, Spec: func() any { return &gateway.GatewayClassSpec{} }},
	{Table: Gateway, Versions: []string{"v1", "v1beta1"}, Spec: func() any { return &gateway.GatewaySpec{} }},
	{Table: ListenerSet, Versions: []string{"v1"}, Spec: func() any { return &gateway.ListenerSetSpec{} }},
	{Table: HTTPRoute, Versions: []string{"v1", "v1beta1"}, Spec: func() any { return &gateway.HTTPRouteSpec{} }},
	{Table: GRPCRoute, Versions: []string{"v1"}, Spec: func() any { return &gateway.GRPCRouteSpec{} }},
	{Table: TCPRoute, Versions: []string{"v1", "v1alpha2"}, Spec: func() any { return &gateway.TCPRouteSpec{} }},
	{Table: TLSRoute, Versions: []string{"v1", "v1alpha3", "v1alpha2"}, Spec: func() any { return &gateway.TLSRouteSpec{} }},
	{Table: UDPRoute, Versions: []string{"v1", "v1alpha2"}, Spec: func() any { return &gateway.UDPRouteSpec{} }},
	{Table: BackendTLSPolicy, Versions: []string{"v1", "v1alpha3"}, Spec: func() any { return &gateway.BackendTLSPolicySpec{} }},
	{Table: BackendTrafficPolicy, Versions: []string{"v1alpha1"}, Spec: func() any { return &experimental.BackendTrafficPolicySpec{} }},
}

// All returns the kinds, but for ReferenceGrants.
func All() []Kind { return slices.Clone(all) }

// Tables returns the tables of All, in its order.
func Tables() []string { return objects.Tables(all) }

// Lookup returns the kind of a table.
func Lookup(table string) (Kind, bool) { return objects.Lookup(all, table) }
