package analysis

import (
	"fmt"
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	mesh "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
	telemetry "istio.io/api/telemetry/v1alpha1"
)

// builtin are the extension providers that need no declaration.
var builtin = []string{"prometheus", "stackdriver", "envoy"}

func (w *world) hasProvider(name string) bool {
	return slices.Contains(builtin, name) ||
		slices.ContainsFunc(w.mesh.GetExtensionProviders(), func(p *mesh.MeshConfig_ExtensionProvider) bool { return p.GetName() == name })
}

// providers finds names of extension providers that the mesh's settings don't have. Without
// settings nothing is known.
func providers(w *world) {
	if w.mesh == nil {
		return
	}
	for _, p := range of[*security.AuthorizationPolicy](w) {
		if name := p.spec.GetProvider().GetName(); name != "" && !w.hasProvider(name) {
			w.report(p.Resource, missing("spec.provider.name", "extension provider", name).
				WithHint("add it to the mesh's extensionProviders; all requests are denied until then"))
		}
	}
	for _, t := range of[*telemetry.Telemetry](w) {
		for i, each := range t.spec.Tracing {
			w.providerRefs(t.Resource, fmt.Sprintf("spec.tracing[%d].providers", i), each.GetProviders())
		}
		for i, each := range t.spec.Metrics {
			w.providerRefs(t.Resource, fmt.Sprintf("spec.metrics[%d].providers", i), each.GetProviders())
		}
		for i, each := range t.spec.AccessLogging {
			w.providerRefs(t.Resource, fmt.Sprintf("spec.accessLogging[%d].providers", i), each.GetProviders())
		}
	}
}

func (w *world) providerRefs(r *Resource, at string, list []*telemetry.ProviderRef) {
	for i, p := range list {
		if p.GetName() != "" && !w.hasProvider(p.Name) {
			w.report(r, missing(fmt.Sprintf("%s[%d].name", at, i), "extension provider", p.Name).WithHint("add it to the mesh's extensionProviders"))
		}
	}
}

const noVerification, noPortVerification = "IST0128", "IST0129"

// unverifiedServers finds rules that begin TLS without saying which certificates are good.
func unverifiedServers(w *world) {
	for _, d := range of[*networking.DestinationRule](w) {
		check := func(code, at string, t *networking.ClientTLSSettings, port string) {
			own := t.GetMode() == networking.ClientTLSSettings_SIMPLE || t.GetMode() == networking.ClientTLSSettings_MUTUAL
			if t == nil || !own || t.CaCertificates+t.CredentialName != "" || t.InsecureSkipVerify.GetValue() {
				return
			}
			w.report(d.Resource, finding.Warnf(code, at, "DestinationRule %s in namespace %s has TLS mode set to %s but no caCertificates are set to validate server identity for host: %s%s",
				d.Name, d.Namespace, t.Mode, d.spec.Host, port).WithHint("set caCertificates, such as /etc/ssl/certs/ca-certificates.crt"))
		}
		check(noVerification, "spec.trafficPolicy.tls", d.spec.GetTrafficPolicy().GetTls(), "")
		for i, p := range d.spec.GetTrafficPolicy().GetPortLevelSettings() {
			check(noPortVerification, fmt.Sprintf("spec.trafficPolicy.portLevelSettings[%d].tls", i), p.GetTls(), fmt.Sprintf(" at port number:%d", p.GetPort().GetNumber()))
		}
	}
}
