package status

import (
	"fmt"
	"slices"
	"strings"

	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

// Parent is what is known of a route at one listener, or in the mesh, that one of its references to
// parents means.
type Parent struct {
	Ref gateway.ParentReference
	// Denied is why the route doesn't belong to it.
	Denied *Problem
	// Problem is what is wrong with the route itself there.
	Problem *Problem
	// Mesh: it is a service or a ServiceEntry. Waypoint is what keeps waypoints from using the
	// route.
	Mesh     bool
	Waypoint string
}

// Reasons why a route belongs to no parent, the first that is told where there are several.
var denials = []string{
	string(gateway.RouteReasonNotAllowedByListeners), string(gateway.RouteReasonNoMatchingListenerHostname),
	"ParentRefConflict", string(gateway.RouteReasonNoMatchingParent),
}

// ParentText writes a reference to a parent as it is compared and ordered.
func ParentText(r gateway.ParentReference, namespace string) string {
	group, kind := gateway.GroupName, "Gateway"
	if r.Group != nil {
		group = string(*r.Group)
	}
	if r.Kind != nil {
		kind = string(*r.Kind)
	}
	if r.Namespace != nil {
		namespace = string(*r.Namespace)
	}
	port := gateway.PortNumber(0)
	if r.Port != nil {
		port = *r.Port
	}
	return fmt.Sprintf("%s/%s/%s/%s/%d.%s", group, kind, r.Name, text(r.SectionName), port, namespace)
}

// Route is what is to be said of a route of a namespace to each of its parents that are known: one
// entry for each reference, also where that means several listeners.
func Route(parents []Parent, namespace string) []gateway.RouteParentStatus {
	groups := map[string][]Parent{}
	for _, p := range parents {
		key := refKey(p.Ref)
		groups[key] = append(groups[key], p)
	}
	out := []gateway.RouteParentStatus{}
	for _, group := range groups {
		out = append(out, oneParent(group))
	}
	slices.SortFunc(out, func(a, b gateway.RouteParentStatus) int {
		return strings.Compare(ParentText(b.ParentRef, namespace), ParentText(a.ParentRef, namespace))
	})
	return out
}

// refKey tells references apart, as they are written.
func refKey(r gateway.ParentReference) string {
	port := "-"
	if r.Port != nil {
		port = fmt.Sprint(*r.Port)
	}
	present := func(set bool, value string) string {
		if set {
			return "=" + value
		}
		return "-"
	}
	return strings.Join([]string{
		present(r.Group != nil, text(r.Group)), present(r.Kind != nil, text(r.Kind)), string(r.Name), present(r.SectionName != nil, text(r.SectionName)),
		port, present(r.Namespace != nil, text(r.Namespace)),
	}, "|")
}

// oneParent is the entry of one reference: of several denials the worst is told, and all that are
// as bad.
func oneParent(group []Parent) gateway.RouteParentStatus {
	told, bound := group[0], 0
	var denied *Problem
	for i, p := range group {
		if p.Denied == nil {
			bound++
		}
		switch a, b := rank(p.Denied), rank(denied); {
		case i == 0:
			denied = p.Denied
		case a < b:
			told, denied = p, p.Denied
		case a == b:
			denied = Join(denied, p.Denied)
		}
	}
	message := "Route was valid"
	if bound > 1 {
		message = fmt.Sprintf("Route was valid, bound to %d parents", bound)
	}
	c := conditions{}
	c.set(string(gateway.RouteConditionAccepted), string(gateway.RouteReasonAccepted), message, denied)
	c.set(string(gateway.RouteConditionResolvedRefs), string(gateway.RouteReasonResolvedRefs), "All references resolved", told.Problem)
	return gateway.RouteParentStatus{ParentRef: told.Ref, ControllerName: Controller, Conditions: c.list()}
}

// rank orders denials: that there is none is told before any.
func rank(p *Problem) int {
	if p == nil {
		return -1
	}
	return slices.Index(denials, p.Reason)
}

func denied(reason gateway.RouteConditionReason, format string, args ...any) *Problem {
	return &Problem{string(reason), fmt.Sprintf(format, args...)}
}

// NoParent says that there is no such parent.
func NoParent(format string, args ...any) *Problem {
	return denied(gateway.RouteReasonNoMatchingParent, format, args...)
}

// NamespaceNotAllowed says that a listener takes no routes of a namespace.
func NamespaceNotAllowed(hostname, namespace string) *Problem {
	return denied(gateway.RouteReasonNotAllowedByListeners,
		"hostnames matched parent hostname %q, but namespace %q is not allowed by the parent", hostname, namespace)
}

// NoHostname says that the route has no host of the listener.
func NoHostname(hostname string) *Problem {
	return denied(gateway.RouteReasonNoMatchingListenerHostname, "no hostnames matched parent hostname %q", hostname)
}

// KindNotAllowed says that a listener takes no routes of a kind; versioned is GROUP/VERSION/KIND.
func KindNotAllowed(versioned string) *Problem {
	return denied(gateway.RouteReasonNotAllowedByListeners, "kind %v is not allowed", versioned)
}

// KindUnserved says that nobody serves routes of a kind.
func KindUnserved(kind string) *Problem {
	return denied(gateway.RouteReasonUnsupportedValue, "%ss are not served by this control plane", kind)
}

// NotPermitted says that no ReferenceGrant lets a route of a kind refer to a backend.
func NotPermitted(name, namespace, kind, from string) *Problem {
	return denied(gateway.RouteReasonRefNotPermitted,
		"backendRef %v/%v not accessible to a %s in namespace %q (missing a ReferenceGrant?)", name, namespace, kind, from)
}

// NoBackend says that there is no such backend.
func NoBackend(name string) *Problem {
	return denied(gateway.RouteReasonBackendNotFound, "backend(%s) not found", name)
}

// NoDatagrams says that a backend's port is none for UDP.
func NoDatagrams(name string, port uint32) *Problem {
	return denied(gateway.RouteReasonUnsupportedProtocol, "backend(%s) has no port %d for UDP", name, port)
}

// BackendKind says that backends of a kind are not served.
func BackendKind(ref gateway.BackendRef) *Problem {
	return denied(gateway.RouteReasonInvalidKind, "referencing unsupported backendRef: group %q kind %q", text(ref.Group), text(ref.Kind))
}

// Left reports whether only the backend of a problem is left out, not its whole route.
func (p *Problem) Left() bool {
	switch p.Reason {
	case string(gateway.RouteReasonRefNotPermitted), string(gateway.RouteReasonBackendNotFound), string(gateway.RouteReasonInvalidKind),
		string(gateway.RouteReasonUnsupportedProtocol):
		return true
	}
	return false
}

// UnsupportedFilter says that filters of a type are not served.
func UnsupportedFilter[T ~string](kind T) *Problem {
	return &Problem{InvalidFilter, fmt.Sprintf("unsupported filter type %q", kind)}
}
