package analysis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
)

const (
	mtlsConflict   = "IST0113"
	claimUnchecked = "IST0149"
	tokenUnchecked = "COX3008"
)

// mtlsConflicts finds rules that turn TLS off, or make it a server's own, towards services whose
// workloads want mutual TLS.
func mtlsConflicts(w *world) {
	for _, d := range of[*networking.DestinationRule](w) {
		t := d.spec.GetTrafficPolicy().GetTls()
		if t == nil || t.Mode == networking.ClientTLSSettings_ISTIO_MUTUAL {
			continue
		}
		for _, s := range w.lookup(d.spec.Host, d.Namespace) {
			policy, strict := w.peerPolicy(s.Namespace, s.Selector)
			if strict {
				w.report(d.Resource, finding.Errorf(mtlsConflict, "spec.trafficPolicy.tls.mode", "A DestinationRule and "+
					"Policy are in conflict with regards to mTLS for host %s. The DestinationRule %q specifies that "+
					"mTLS must be %t but the Policy object %q specifies %s",
					d.spec.Host, d.Namespace+"/"+d.Name, false, policy, "STRICT").WithHint("leave tls out, or write mode: ISTIO_MUTUAL"))
				break
			}
		}
	}
}

// peerPolicy returns the policy that decides for the workloads of a service, and whether they want
// mutual TLS. Services outside of the mesh have no workloads, and no selector.
func (w *world) peerPolicy(namespace string, selector map[string]string) (name string, strict bool) {
	if len(selector) == 0 {
		return "", false
	}
	best := -1
	for _, p := range of[*security.PeerAuthentication](w) {
		labels := p.spec.Selector.GetMatchLabels()
		rank := 0
		switch {
		case p.Namespace == namespace && istio.ServiceSelects(labels, selector):
			rank = 2
		case p.Namespace == namespace && len(labels) == 0:
			rank = 1
		case p.Namespace != w.root() || len(labels) > 0:
			continue
		}
		if mode := p.spec.GetMtls().GetMode(); mode != security.PeerAuthentication_MutualTLS_UNSET && rank > best {
			best, name, strict = rank, p.Namespace+"/"+p.Name, mode == security.PeerAuthentication_MutualTLS_STRICT
		}
	}
	return name, strict
}

// tokens finds authorization by tokens that no RequestAuthentication verifies: requests never have
// a principal.
func tokens(w *world) {
	for _, p := range of[*security.AuthorizationPolicy](w) {
		at, needs := tokenField(p.spec)
		if needs && !w.verifies(p.Namespace, p.spec.Selector.GetMatchLabels()) && p.spec.TargetRef == nil && len(p.spec.TargetRefs) == 0 {
			w.report(p.Resource, finding.Warnf(tokenUnchecked, at, "the policy looks at tokens, and no RequestAuthentication for its workloads verifies any").
				WithHint("add a RequestAuthentication with jwtRules"))
		}
	}
}

// tokenField returns the first field of a policy that looks at tokens.
func tokenField(p *security.AuthorizationPolicy) (at string, found bool) {
	for i, r := range p.Rules {
		for j, f := range r.GetFrom() {
			if len(f.GetSource().GetRequestPrincipals())+len(f.GetSource().GetNotRequestPrincipals()) > 0 {
				return fmt.Sprintf("spec.rules[%d].from[%d].source", i, j), true
			}
		}
		for j, c := range r.GetWhen() {
			if strings.HasPrefix(c.GetKey(), "request.auth.") {
				return fmt.Sprintf("spec.rules[%d].when[%d]", i, j), true
			}
		}
	}
	return "", false
}

// verifies reports whether a RequestAuthentication may apply to what a selector selects.
func (w *world) verifies(namespace string, labels map[string]string) bool {
	return slices.ContainsFunc(of[*security.RequestAuthentication](w), func(r item[*security.RequestAuthentication]) bool {
		if r.Namespace != namespace && r.Namespace != w.root() && namespace != w.root() {
			return false
		}
		return len(r.spec.JwtRules) > 0 && compatible(r.spec.Selector.GetMatchLabels(), labels)
	})
}

// compatible reports whether some workload may have the labels of both selectors.
func compatible(a, b map[string]string) bool {
	for k, v := range a {
		if other, ok := b[k]; ok && other != v {
			return false
		}
	}
	return true
}

const claimPrefix = "@request.auth.claims"

// claimRoutes finds routing by claims at gateways for whose workloads no RequestAuthentication
// verifies tokens.
func claimRoutes(w *world) {
	for _, v := range of[*networking.VirtualService](w) {
		key, at := claimOf(v.spec)
		if key == "" {
			continue
		}
		for _, name := range v.spec.Gateways {
			g := w.gateway(v.Namespace, name)
			if g == nil || w.verifies(g.Namespace, g.spec.Selector) {
				continue
			}
			w.report(v.Resource, finding.Errorf(claimUnchecked, at, "The virtual service uses the JWT claim based "+
				"routing (key: %s) but found no request authentication for the gateway (%s) pod (%s). The request "+
				"authentication must first be applied for the gateway pods to validate the JWT token and make the "+
				"claims available for routing",
				key, name, show(g.spec.Selector)))
		}
	}
}

func claimOf(v *networking.VirtualService) (key, at string) {
	for i, r := range v.Http {
		for j, m := range r.GetMatch() {
			for _, headers := range []map[string]*networking.StringMatch{m.GetHeaders(), m.GetWithoutHeaders()} {
				for name := range headers {
					if strings.HasPrefix(name, claimPrefix) && (key == "" || name < key) {
						key, at = name, fmt.Sprintf("spec.http[%d].match[%d]", i, j)
					}
				}
			}
		}
	}
	return key, at
}
