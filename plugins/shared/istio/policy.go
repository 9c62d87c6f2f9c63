package istio

import (
	"slices"

	typev1 "istio.io/api/type/v1beta1"
)

// GatewayName is the label of workloads that run a Gateway of the Gateway API.
const GatewayName = "gateway.networking.k8s.io/gateway-name"

// Annotations of Gateways that were derived of the Gateway API, of what istiod doesn't serve.
const (
	// BackendCertificate names the credential that the Gateway's proxies show to backends.
	BackendCertificate = "internal.coxswain.io/backend-certificate"
	// Misdirected: requests that belong to another listener of the port, and came by a connection
	// for this one, are answered with 421.
	Misdirected = "internal.coxswain.io/misdirected"
)

// Targets is what policies have that choose workloads by labels, or by a reference to the Gateway
// that they run.
type Targets interface {
	GetSelector() *typev1.WorkloadSelector
	GetTargetRef() *typev1.PolicyTargetReference
	GetTargetRefs() []*typev1.PolicyTargetReference
}

// Attaches reports whether a policy in a namespace that counts for the workload is one for it. own:
// the namespace is the workload's, where references look.
func Attaches(t Targets, own bool, labels map[string]string) bool {
	refs := t.GetTargetRefs()
	if len(refs) == 0 && t.GetTargetRef() != nil {
		refs = []*typev1.PolicyTargetReference{t.GetTargetRef()}
	}
	return AttachesTo(refs, t.GetSelector().GetMatchLabels(), own, labels)
}

// AttachesTo is Attaches for references and a selector as they are: where there are references, the
// selector doesn't count.
func AttachesTo(refs []*typev1.PolicyTargetReference, selector map[string]string, own bool, labels map[string]string) bool {
	if len(refs) == 0 {
		return Selects(selector, labels)
	}
	name := labels[GatewayName]
	return name != "" && own && slices.ContainsFunc(refs, func(r *typev1.PolicyTargetReference) bool {
		return r.Group == "gateway.networking.k8s.io" && r.Kind == "Gateway" && r.Name == name
	})
}
