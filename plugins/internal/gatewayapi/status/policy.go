package status

import (
	"fmt"

	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

// Policy is what is known of a BackendTLSPolicy or an XBackendTrafficPolicy.
type Policy struct {
	Targets []Target
	Roots   Roots
	// Sessions: it says that sessions are to stay, which isn't served.
	Sessions bool
	// Gateways are those whose routes lead to a target.
	Gateways []string
}

// Target is what is known of one of the objects that a policy is for.
type Target struct {
	Ref gateway.ParentReference
	// Ignored: the policy is left to others. NotFound says why there is no such object, Conflicts
	// which older policy is for it.
	Ignored             bool
	NotFound, Conflicts string
}

// Roots is what is wrong with the roots of a policy; the zero value: nothing.
type Roots struct {
	// Unknown is a set of roots that isn't known. Kind says that roots are of a kind that isn't
	// read; Known: there are such objects. Missing and Invalid say why they can't be read.
	Unknown, Kind, Missing, Invalid string
	Known                           bool
	// First: there are more, which are not read.
	First bool
}

const valid = "Configuration is valid"

// conditions are those of the policy as a whole.
func (p Policy) conditions(resolved bool) conditions {
	c := conditions{}
	message := valid
	var accepted, refs *Problem
	switch r := p.Roots; {
	case r.Unknown != "":
		accepted = &Problem{string(gateway.PolicyReasonInvalid), "Unknown wellKnownCACertificates: " + r.Unknown}
	case r.Kind != "" && r.Known:
		refs = &Problem{string(gateway.BackendTLSPolicyReasonInvalidKind), "Certificate reference invalid: " + r.Kind}
	case r.Kind != "":
		refs = &Problem{string(gateway.BackendTLSPolicyReasonInvalidKind), "Certificate reference not supported: " + r.Kind}
	case r.Missing != "":
		refs = &Problem{string(gateway.BackendTLSPolicyReasonInvalidCACertificateRef), "Certificate reference not found: " + r.Missing}
	case r.Invalid != "":
		refs = &Problem{string(gateway.BackendTLSPolicyReasonInvalidCACertificateRef), "Certificate invalid: " + r.Invalid}
	}
	if refs != nil {
		accepted = &Problem{
			string(gateway.BackendTLSPolicyReasonNoValidCACertificate),
			"Certificate reference invalid: " + p.Roots.Kind + p.Roots.Missing + p.Roots.Invalid,
		}
	}
	if p.Roots.First {
		message += "; warning: only the first caCertificateRefs will be used"
	}
	if p.Sessions {
		message = "Configuration is valid, but Istio does not support the following fields: sessionPersistence"
	}
	c.set(string(gateway.PolicyConditionAccepted), string(gateway.PolicyReasonAccepted), message, accepted)
	if resolved {
		c.set(string(gateway.BackendTLSPolicyConditionResolvedRefs), string(gateway.BackendTLSPolicyReasonResolvedRefs), valid, refs)
	}
	return c
}

// mostAncestors is how many entries a status may have. Source: Gateway API, PolicyStatus.ancestors.
const mostAncestors = 16

// Status is what is to be said of the policy; resolved: it has references of its own.
func (p Policy) Status(resolved bool) gateway.PolicyStatus {
	out := gateway.PolicyStatus{}
	last := p.conditions(resolved)
	for _, t := range p.Targets {
		c := p.conditions(resolved)
		switch {
		case t.Ignored:
			c = conditions{}
			c.set(string(gateway.PolicyConditionAccepted), "", "", &Problem{
				"IgnoredByIstio", "Ignored by Istio due to annotation istio.io/ignore-policy-attachment=true",
			})
		case t.NotFound != "":
			c.set(string(gateway.PolicyConditionAccepted), "", "", &Problem{string(gateway.PolicyReasonTargetNotFound), "targetRefs invalid: " + t.NotFound})
		case t.Conflicts != "":
			c.set(string(gateway.PolicyConditionAccepted), "", "", &Problem{
				string(gateway.PolicyReasonConflicted), fmt.Sprintf("Conflicts with BackendTLSPolicy %q targeting the same backend", t.Conflicts),
			})
		}
		last = c
		out.Ancestors = append(out.Ancestors, gateway.PolicyAncestorStatus{AncestorRef: t.Ref, ControllerName: MeshController, Conditions: c.list()})
	}
	group, kind := gateway.Group(gateway.GroupName), gateway.Kind("Gateway")
	for _, name := range p.Gateways {
		out.Ancestors = append(out.Ancestors, gateway.PolicyAncestorStatus{
			AncestorRef:    gateway.ParentReference{Group: &group, Kind: &kind, Name: gateway.ObjectName(name)},
			ControllerName: Controller, Conditions: last.list(),
		})
	}
	out.Ancestors = out.Ancestors[:min(len(out.Ancestors), mostAncestors)]
	return out
}
