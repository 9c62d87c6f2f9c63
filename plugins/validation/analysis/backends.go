package analysis

import (
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	networking "istio.io/api/networking/v1alpha3"
)

const (
	plainBackend = "COX3014"
	backendTLS   = "BackendTLSPolicy"
)

// parents is the annotation of a rule that says of which policies it was derived.
const parents = "internal.istio.io/parents"

// backendPolicy is a host to which a BackendTLSPolicy has clients speak TLS.
type backendPolicy struct{ namespace, name, host string }

// plainBackends finds rules that have clients of their namespace speak in plain text to a host for
// which a BackendTLSPolicy of another namespace says TLS: of a client's own namespace the rule
// alone counts. Source: Istio, DestinationRule, "exportTo".
func plainBackends(w *world) {
	policies := w.backendPolicies()
	if len(policies) == 0 {
		return
	}
	for _, r := range of[*networking.DestinationRule](w) {
		if r.derived || r.Namespace == w.root() || r.spec.GetTrafficPolicy().GetTls() != nil {
			continue
		}
		rule := fullName(r.spec.Host, r.Namespace)
		for _, p := range policies {
			if p.namespace != r.Namespace && (rule == p.host || istio.IsWildcard(rule) && istio.Covers(rule, p.host)) {
				w.reportOnce(r.Resource, finding.Warnf(plainBackend, "spec.trafficPolicy",
					"clients of namespace %s speak to %s in plain text: "+
						"BackendTLSPolicy %s/%s doesn't count for them, as this rule of their own namespace says nothing of TLS",
					r.Namespace, p.host, p.namespace, p.name).
					WithHint("say trafficPolicy.tls here, too"))
			}
		}
	}
}

// backendPolicies are those of documents, and those that rules were derived of.
func (w *world) backendPolicies() (list []backendPolicy) {
	for _, r := range w.resources {
		if rule, ok := r.Spec.(*networking.DestinationRule); ok && r.derived && rule.GetTrafficPolicy() != nil {
			for of := range strings.SplitSeq(r.Annotations[parents], ",") {
				if name, tls := strings.CutPrefix(of, backendTLS+"/"); tls {
					list = append(list, backendPolicy{r.Namespace, strings.TrimPrefix(name, r.Namespace+"."),
						fullName(rule.Host, r.Namespace)})
				}
			}
		}
		if r.Kind != backendTLS || r.Group != gatewayapi.Group || r.Node == nil {
			continue
		}
		var spec struct {
			TargetRefs []struct{ Kind, Name string } `yaml:"targetRefs"`
		}
		if n := protoyaml.Child(r.Node, "spec"); n == nil || n.Decode(&spec) != nil {
			continue // its own fault
		}
		for _, to := range spec.TargetRefs {
			for _, host := range w.hostsOf(r.Namespace, to.Kind, to.Name) {
				list = append(list, backendPolicy{r.Namespace, r.Name, host})
			}
		}
	}
	return slices.Compact(list)
}

// hostsOf are those of a Service or a ServiceEntry.
func (w *world) hostsOf(namespace, kind, name string) []string {
	if kind == kindService {
		return []string{name + "." + namespace + ".svc." + domain}
	}
	for _, e := range of[*networking.ServiceEntry](w) {
		if e.Namespace == namespace && e.Name == name {
			return e.spec.Hosts
		}
	}
	return nil
}
