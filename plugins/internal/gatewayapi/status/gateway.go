package status

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

// Gateway is what is known of a Gateway.
type Gateway struct {
	Spec *gateway.GatewaySpec
	// Remote: it stands for what runs elsewhere.
	Remote bool
	// Services are the hosts of the services in front of what serves it.
	Services []string
	// Ports are those of its servers, Datagrams those of servers for datagrams.
	Ports, Datagrams []uint32
	// Problem is why it isn't accepted, Client what is wrong with its certificate for backends.
	Problem, Client *Problem
	Listeners       []Listener
	// ListenerSets is how many belong to it, with a listener that is served.
	ListenerSets int
}

// Listener is what is known of a listener.
type Listener struct {
	Of gateway.Listener
	// TLS, Protocol and Port are what is wrong with these, Expected with a listener for its class.
	TLS, Protocol, Port, Expected *Problem
	// NoTLS: it needs settings for TLS.
	NoTLS bool
	// Datagrams: UDPRoutes are served.
	Datagrams bool
	// Conflicted is why it loses against an earlier listener.
	Conflicted gateway.ListenerConditionReason
	// Attached is how many routes belong to it.
	Attached int32
}

// Conflict is a listener that loses against an earlier one; datagrams: UDPRoutes are served.
func Conflict(l gateway.Listener, why gateway.ListenerConditionReason, datagrams bool) Listener {
	return Listener{Of: l, Conflicted: why, Datagrams: datagrams}
}

// Valid reports whether the listener is served.
func (l Listener) Valid() bool {
	return l.TLS == nil && l.Protocol == nil && l.Port == nil && !l.NoTLS && l.Conflicted == ""
}

const noErrors = "No errors found"

// Status is what is to be said of the listener.
func (l Listener) Status() gateway.ListenerStatus {
	c := conditions{}
	if l.Conflicted != "" {
		problem := &Problem{string(l.Conflicted), "Listener has a conflict with another listener attached to the same Gateway"}
		c.set(string(gateway.ListenerConditionAccepted), "", "", problem)
		c.set(string(gateway.ListenerConditionProgrammed), "", "", problem)
		c.set(string(gateway.ListenerConditionConflicted), problem.Reason, problem.Message, nil)
	} else {
		l.judge(c)
	}
	kinds, valid := SupportedKinds(l.Of, l.Datagrams)
	if !valid {
		c.set(string(gateway.ListenerConditionResolvedRefs), "", "", &Problem{string(gateway.ListenerReasonInvalidRouteKinds), "Invalid route kinds"})
	}
	return gateway.ListenerStatus{Name: l.Of.Name, SupportedKinds: kinds, AttachedRoutes: l.Attached, Conditions: c.list()}
}

// judge sets the conditions of a listener without conflicts.
func (l Listener) judge(c conditions) {
	var accepted, programmed *Problem
	if l.TLS != nil {
		programmed = &Problem{string(gateway.GatewayReasonInvalid), "Bad TLS configuration"}
		switch l.TLS.Reason {
		case string(gateway.ListenerReasonInvalidCACertificateRef), string(gateway.ListenerReasonInvalidCACertificateKind),
			string(gateway.ListenerReasonRefNotPermitted):
			accepted = &Problem{string(gateway.ListenerReasonNoValidCACertificate), l.TLS.Message}
		}
	}
	for _, p := range []*Problem{l.Port, l.Protocol, l.Expected} {
		if p != nil {
			accepted = p
		}
	}
	if l.NoTLS {
		accepted = unsupported("protocol is %s but no TLS section is defined", l.Of.Protocol)
		programmed = &Problem{string(gateway.GatewayReasonInvalid), "Bad TLS configuration"}
	}
	c.set(string(gateway.ListenerConditionAccepted), string(gateway.ListenerReasonAccepted), noErrors, accepted)
	c.set(string(gateway.ListenerConditionProgrammed), string(gateway.ListenerReasonProgrammed), noErrors, programmed)
	c.set(string(gateway.ListenerConditionResolvedRefs), string(gateway.ListenerReasonResolvedRefs), noErrors, l.TLS)
	c.set(string(gateway.ListenerConditionConflicted), "", "", &Problem{string(gateway.ListenerReasonNoConflicts), noErrors})
}

// SupportedKinds are the kinds of routes that a listener takes: those of its protocol that it
// allows; datagrams: UDPRoutes are served. valid is false where it allows others.
func SupportedKinds(l gateway.Listener, datagrams bool) (kinds []gateway.RouteGroupKind, valid bool) {
	kinds = []gateway.RouteGroupKind{}
	switch l.Protocol {
	case gateway.HTTPProtocolType, gateway.HTTPSProtocolType:
		kinds = append(kinds, RouteKind("HTTPRoute"), RouteKind("GRPCRoute"))
	case gateway.TCPProtocolType:
		kinds = append(kinds, RouteKind("TCPRoute"))
	case gateway.UDPProtocolType:
		if datagrams {
			kinds = append(kinds, RouteKind("UDPRoute"))
		}
	case gateway.TLSProtocolType:
		kinds = append(kinds, RouteKind("TLSRoute"))
		if l.TLS != nil && l.TLS.Mode != nil && *l.TLS.Mode == gateway.TLSModeTerminate {
			kinds = append(kinds, RouteKind("TCPRoute"))
		}
	}
	if l.AllowedRoutes == nil || len(l.AllowedRoutes.Kinds) == 0 {
		return kinds, true
	}
	kinds = slices.DeleteFunc(kinds, func(k gateway.RouteGroupKind) bool {
		return !slices.ContainsFunc(l.AllowedRoutes.Kinds, func(a gateway.RouteGroupKind) bool { return sameKind(k, a) })
	})
	return kinds, len(kinds) == len(l.AllowedRoutes.Kinds)
}

// RouteKind names a kind of routes.
func RouteKind(name string) gateway.RouteGroupKind {
	group := gateway.Group(gateway.GroupName)
	return gateway.RouteGroupKind{Group: &group, Kind: gateway.Kind(name)}
}

func sameKind(a, b gateway.RouteGroupKind) bool { return a.Kind == b.Kind && groupOf(a) == groupOf(b) }

func groupOf(k gateway.RouteGroupKind) string {
	if k.Group == nil {
		return gateway.GroupName
	}
	return string(*k.Group)
}

// Status is what is to be said of the Gateway: at is where it can be reached.
func (g Gateway) Status(at Reach) gateway.GatewayStatus {
	if g.Remote {
		return g.remote()
	}
	c := conditions{}
	g.accepted(c)
	c.set(string(gateway.GatewayConditionResolvedRefs), string(gateway.GatewayReasonResolvedRefs), "All references resolved", g.Client)
	if g.insecure() {
		c.set(string(gateway.GatewayConditionInsecureFrontendValidationMode), string(gateway.GatewayReasonConfigurationChanged),
			"Gateway is operating in AllowInsecureFallback mode for frontend validation", nil)
	}
	at.programmed(c, g.Services)
	out := gateway.GatewayStatus{Conditions: c.list(), Addresses: at.addresses()}
	if n := int32(g.ListenerSets); n > 0 {
		out.AttachedListenerSets = &n
	}
	for _, l := range g.Listeners {
		out.Listeners = append(out.Listeners, l.Status())
	}
	return out
}

// accepted sets the condition Accepted: a Gateway is, as long as one of its listeners is served.
func (g Gateway) accepted(c conditions) {
	reason, message, problem := string(gateway.GatewayReasonAccepted), "Resource accepted", g.Problem
	valid := 0
	for _, l := range g.Listeners {
		if l.Valid() {
			valid++
		}
	}
	if all := len(g.Spec.Listeners); problem == nil && valid < all {
		reason, message = string(gateway.GatewayReasonListenersNotValid), "One or more of the Gateway's listeners are invalid"
		if valid == 0 {
			problem = &Problem{reason, "None of the Gateway's listeners are valid"}
		}
	}
	c.set(string(gateway.GatewayConditionAccepted), reason, message, problem)
}

// insecure reports whether clients are let in somewhere whose certificates are not right.
func (g Gateway) insecure() bool {
	if g.Spec.TLS == nil || g.Spec.TLS.Frontend == nil {
		return false
	}
	falls := func(v *gateway.FrontendTLSValidation) bool {
		return v != nil && v.Mode == gateway.AllowInsecureFallback
	}
	return falls(g.Spec.TLS.Frontend.Default.Validation) || slices.ContainsFunc(g.Spec.TLS.Frontend.PerPort, func(p gateway.TLSPortConfig) bool {
		return falls(p.TLS.Validation)
	})
}

// remote is the status of what runs elsewhere.
func (g Gateway) remote() gateway.GatewayStatus {
	c := conditions{}
	c.set(string(gateway.GatewayConditionAccepted), string(gateway.GatewayReasonAccepted), "Resource accepted", nil)
	c.set(string(gateway.GatewayConditionProgrammed), string(gateway.GatewayReasonProgrammed), "This Gateway is remote; Istio will not program it", nil)
	out := gateway.GatewayStatus{Conditions: c.list()}
	for _, a := range g.Spec.Addresses {
		out.Addresses = append(out.Addresses, gateway.GatewayStatusAddress(a))
	}
	return out
}

// Class is what is to be said of a GatewayClass of a controller, and what is served of its
// Gateways; beyond: with what istiod doesn't serve.
func Class(controller gateway.GatewayController, beyond bool) gateway.GatewayClassStatus {
	out := gateway.GatewayClassStatus{Conditions: []metav1.Condition{{
		Type: string(gateway.GatewayClassConditionStatusAccepted), Status: metav1.ConditionTrue,
		Reason: string(gateway.GatewayClassReasonAccepted), Message: "Handled by Istio controller",
	}}}
	switch controller {
	case Controller:
		for _, name := range Served(beyond) {
			out.SupportedFeatures = append(out.SupportedFeatures, gateway.SupportedFeature{Name: gateway.FeatureName(name)})
		}
	case MeshController, EastWestController:
		c := &out.Conditions[0]
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, string(gateway.GatewayClassReasonUnsupported), unserved
	}
	return out
}

const unserved = "Gateways of ambient mode are not served by this control plane"

// Unserved is the status of a Gateway of which nothing is served.
func Unserved(s gateway.GatewayStatus) gateway.GatewayStatus {
	for i := range s.Conditions {
		switch c := &s.Conditions[i]; c.Type {
		case string(gateway.GatewayConditionAccepted), string(gateway.GatewayConditionProgrammed):
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, string(gateway.GatewayReasonInvalid), unserved
		}
	}
	return s
}
