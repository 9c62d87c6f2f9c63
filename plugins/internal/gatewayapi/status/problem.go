// Package status judges objects of the Gateway API: which conditions each has, with which reasons
// and messages, as istiod writes them.
//
// It is pure: package derive finds out what is right and wrong, and this package says it in the
// words of the API. Conditions have neither a time nor a generation: who writes them into an object
// sets both. Sources: Gateway API, "Conditions"; Istio, Kubernetes Gateway API.
package status

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

// Controllers that statuses name.
const (
	Controller         gateway.GatewayController = "istio.io/gateway-controller"
	MeshController     gateway.GatewayController = "istio.io/mesh-controller"
	EastWestController gateway.GatewayController = "istio.io/eastwest-controller"
	RemoteController   gateway.GatewayController = "istio.io/unmanaged-gateway"
)

// Problem is why something is not served, or not as it says.
type Problem struct {
	// Reason is one of the API's words, such as BackendNotFound.
	Reason string
	// Message is for people.
	Message string
}

// Join makes one problem of two, of which either may be nil: the first one's reason, both messages.
func Join(a, b *Problem) *Problem {
	switch {
	case b == nil:
		return a
	case a == nil:
		return b
	}
	return &Problem{a.Reason, a.Message + "; " + b.Message}
}

// Reasons that are Istio's own.
const (
	InvalidDestination   = "InvalidDestination"
	InvalidFilter        = "InvalidFilter"
	InvalidConfiguration = "InvalidConfiguration"
	deprecatedField      = "DeprecatedField"
)

// Deprecated says that an annotation is no longer to be used.
func Deprecated(annotation string) *Problem {
	return &Problem{deprecatedField, "annotation " + annotation + " is deprecated, use Spec.Infrastructure.Routeability"}
}

// conditions are the conditions of an object by their type.
type conditions map[string]metav1.Condition

// set says that a condition holds, unless there is a problem.
func (c conditions) set(kind, reason, message string, problem *Problem) {
	out := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message}
	if problem != nil {
		out.Status, out.Reason, out.Message = metav1.ConditionFalse, problem.Reason, problem.Message
	}
	c[kind] = out
}

// list returns the conditions in the order of their types.
func (c conditions) list() []metav1.Condition {
	out := make([]metav1.Condition, 0, len(c))
	for _, one := range c {
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	return out
}
