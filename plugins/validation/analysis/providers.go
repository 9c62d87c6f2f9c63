package analysis

import (
	"fmt"
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/plugins/validation/rules"
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

const ignoredLogging = "IST0157"

// defaultProviders finds access logs that go nowhere: of Telemetries that name no provider, where
// the mesh has none for all. Without settings nothing is known.
func defaultProviders(w *world) {
	if len(w.mesh.GetDefaultProviders().GetAccessLogging()) > 0 {
		return
	}
	for _, t := range of[*telemetry.Telemetry](w) {
		for i, l := range t.spec.AccessLogging {
			if len(l.GetProviders()) == 0 && !l.GetDisabled().GetValue() {
				w.report(t.Resource, finding.Warnf(ignoredLogging, fmt.Sprintf("spec.accessLogging[%d].providers", i),
					"it names no provider, and the mesh has none for access logs: nothing is logged").WithHint("name one, such as envoy"))
			}
		}
	}
}

// deprecatedFields finds what is ignored, or will be.
func deprecatedFields(w *world) {
	for _, s := range of[*networking.Sidecar](w) {
		if s.spec.OutboundTrafficPolicy.GetEgressProxy() != nil {
			w.report(s.Resource, finding.Warnf(rules.Deprecated, "spec.outboundTrafficPolicy.egressProxy", "the field is ignored").
				WithHint("lead the traffic to an egress gateway by a VirtualService"))
		}
	}
	lightstep := map[string]bool{}
	for _, p := range w.mesh.GetExtensionProviders() {
		lightstep[p.GetName()] = p.GetLightstep() != nil //lint:ignore SA1019 that people still set it is what is told
	}
	for _, t := range of[*telemetry.Telemetry](w) {
		for i, each := range t.spec.Tracing {
			for j, p := range each.GetProviders() {
				if lightstep[p.GetName()] {
					w.report(t.Resource, finding.Warnf(rules.Deprecated, fmt.Sprintf("spec.tracing[%d].providers[%d]", i, j),
						"the provider %s is Lightstep's, which is deprecated", p.GetName()).
						WithHint("use one for OpenTelemetry"))
				}
			}
		}
	}
}

const noVerification, noPortVerification = "IST0128", "IST0129"

// unverifiedServers finds rules that begin TLS without saying which certificates are good.
func unverifiedServers(w *world) {
	for _, d := range of[*networking.DestinationRule](w) {
		check := func(code, at string, t *networking.ClientTLSSettings, port string) {
			own := t.GetMode() == networking.ClientTLSSettings_SIMPLE || t.GetMode() == networking.ClientTLSSettings_MUTUAL
			// Of a credential sidecars take notice where the rule names their labels.
			named := t.GetCredentialName() != "" && d.spec.WorkloadSelector != nil
			if t == nil || !own || t.CaCertificates != "" || named || t.InsecureSkipVerify.GetValue() {
				return
			}
			w.report(d.Resource, finding.Warnf(code, at, "DestinationRule %s in namespace %s has TLS mode set to %s "+
				"but no caCertificates are set to validate server identity for host: %s%s",
				d.Name, d.Namespace, t.Mode, d.spec.Host, port).WithHint("set caCertificates, such as /etc/ssl/certs/ca-certificates.crt"))
		}
		check(noVerification, "spec.trafficPolicy.tls", d.spec.GetTrafficPolicy().GetTls(), "")
		for i, p := range d.spec.GetTrafficPolicy().GetPortLevelSettings() {
			check(noPortVerification, fmt.Sprintf("spec.trafficPolicy.portLevelSettings[%d].tls", i), p.GetTls(),
				fmt.Sprintf(" at port number:%d", p.GetPort().GetNumber()))
		}
	}
}
