// Package gatewayapi knows the kinds of the Kubernetes Gateway API: their tables, their versions,
// and how the spec of an object stands in a row.
//
// A kind's table is named GROUP/KIND. A row's payload is the object's spec as JSON, with the fields
// of the API's own Go types; the key is NAMESPACE/NAME, or NAME for kinds without a namespace.
// Package derive makes Istio's resources of such rows, package status says what is to be said of
// each object. Source: sigs.k8s.io/gateway-api.
package gatewayapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	gateway "sigs.k8s.io/gateway-api/apis/v1"
	experimental "sigs.k8s.io/gateway-api/apisx/v1alpha1"

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
	ReferenceGrant       = Group + "/ReferenceGrant"
	BackendTLSPolicy     = Group + "/BackendTLSPolicy"
	BackendTrafficPolicy = ExperimentalGroup + "/XBackendTrafficPolicy"
)

// Kind is a kind of the API.
type Kind struct {
	// Table is GROUP/KIND.
	Table string
	// Versions that are read, the one to prefer first. They have the same Go type.
	Versions []string
	// Cluster: its objects are in no namespace.
	Cluster bool
	spec    func() any
}

// Group returns the API group, Name the kind's name.
func (k Kind) Group() string { group, _, _ := strings.Cut(k.Table, "/"); return group }

// Name returns the kind's name, such as HTTPRoute.
func (k Kind) Name() string { _, name, _ := strings.Cut(k.Table, "/"); return name }

// Serves reports whether a version of the kind is read.
func (k Kind) Serves(version string) bool { return slices.Contains(k.Versions, version) }

// all is never changed. ReferenceGrants are not in it: package kinds reads them by themselves.
var all = []Kind{
	{GatewayClass, []string{"v1", "v1beta1"}, true, func() any { return &gateway.GatewayClassSpec{} }},
	{Gateway, []string{"v1", "v1beta1"}, false, func() any { return &gateway.GatewaySpec{} }},
	{ListenerSet, []string{"v1"}, false, func() any { return &gateway.ListenerSetSpec{} }},
	{HTTPRoute, []string{"v1", "v1beta1"}, false, func() any { return &gateway.HTTPRouteSpec{} }},
	{GRPCRoute, []string{"v1"}, false, func() any { return &gateway.GRPCRouteSpec{} }},
	{TCPRoute, []string{"v1", "v1alpha2"}, false, func() any { return &gateway.TCPRouteSpec{} }},
	{TLSRoute, []string{"v1", "v1alpha3", "v1alpha2"}, false, func() any { return &gateway.TLSRouteSpec{} }},
	{BackendTLSPolicy, []string{"v1", "v1alpha3"}, false, func() any { return &gateway.BackendTLSPolicySpec{} }},
	{BackendTrafficPolicy, []string{"v1alpha1"}, false, func() any { return &experimental.BackendTrafficPolicySpec{} }},
}

// All returns the kinds, but for ReferenceGrants.
func All() []Kind { return slices.Clone(all) }

// Tables returns the tables of All, in its order.
func Tables() []string {
	var out []string
	for _, k := range all {
		out = append(out, k.Table)
	}
	return out
}

// Lookup returns the kind of a table.
func Lookup(table string) (Kind, bool) {
	for _, k := range all {
		if k.Table == table {
			return k, true
		}
	}
	return Kind{}, false
}

// Key returns the key of an object's row.
func (k Kind) Key(namespace, name string) string {
	if k.Cluster {
		return name
	}
	return namespace + "/" + name
}

// Encode returns the payload of a row for a spec that is JSON. The error's path says which field
// has another type than the API's; it is empty where that is not known.
func (k Kind) Encode(spec []byte) (payload []byte, path string, err error) {
	into := k.spec()
	if err := json.Unmarshal(spec, into); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, "spec." + wrong.Field, fmt.Errorf("expected %s, got %s", wrong.Type.Kind(), wrong.Value)
		}
		return nil, "", err
	}
	payload, err = json.Marshal(into)
	return payload, "", err
}

// Object is an object of a kind, as a row has it.
type Object[S any] struct {
	Namespace, Name string
	Row             *pb.Row
	Spec            S
}

// Decode reads a row.
func Decode[S any](row *pb.Row) (*Object[S], error) {
	o := &Object[S]{Row: row}
	var inside bool
	if o.Namespace, o.Name, inside = strings.Cut(row.Key, "/"); !inside {
		o.Namespace, o.Name = "", row.Key
	}
	if err := json.Unmarshal(row.Payload, &o.Spec); err != nil {
		return nil, fmt.Errorf("row %s (%s) can't be read: %w", row.Key, row.Source, err)
	}
	return o, nil
}

// Same reports whether two objects say the same, at the same place.
func Same[S any](a, b *Object[S]) bool { return a == b || SameRow(a.Row, b.Row) }

// SameRow reports whether two rows say the same, at the same place.
func SameRow(a, b *pb.Row) bool {
	return a == b || a.Key == b.Key && a.Source == b.Source && a.Created == b.Created && a.Undated == b.Undated &&
		bytes.Equal(a.Payload, b.Payload) && sameTexts(a.Labels, b.Labels) && sameTexts(a.Annotations, b.Annotations)
}

func sameTexts(a, b map[string]string) bool {
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
