package placement

import (
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/clusters"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/routes"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
)

// Facts are the answers that make up a view's key, for people who ask what splits views.

func clientFacts(k clusters.Client, out map[string]string) {
	certificateFacts(k.Certificates, out)
	out["metadata exchange"] = strconv.FormatBool(k.MetadataExchange)
	out["families"] = k.Families.String()
	k.Place.Facts(out)
	if k.Zones {
		out["zones"] = "true"
	}
	k.Network.Facts(out)
}

// certificateFacts say where proxies have their certificates.
func certificateFacts(c encode.Certificates, out map[string]string) {
	out["agent"] = strconv.FormatBool(c.From.Served())
	if c.From != encode.Agent {
		out["secrets"] = string(c.From)
	}
	if c.Chain != "" {
		out["certificate"] = c.Chain
	}
	if c.Socket {
		out["secret socket"] = "true"
	}
}

func kindOf(router bool) string {
	if router {
		return "router"
	}
	return "sidecar"
}

func label(router bool, s scope.Scope, more ...string) string {
	parts := []string{kindOf(router), s.Namespace}
	for _, m := range append([]string{s.Sidecar}, more...) {
		if m != "" {
			parts = append(parts, m)
		}
	}
	return strings.Join(parts, " ")
}

// Describe labels the view, and says what counts.
func (k ClusterView) Describe() (string, map[string]string) {
	facts := map[string]string{"type": kindOf(k.Set.Client.Router), "targets": k.Targets}
	k.Ingress.Facts(facts)
	patchFacts(k.Set.Patches, facts)
	k.Set.Scope.Facts(facts)
	clientFacts(k.Set.Client, facts)
	return label(k.Set.Client.Router, k.Set.Scope, k.Targets), facts
}

// Describe labels the view, and says what counts.
func (k EndpointView) Describe() (string, map[string]string) {
	facts := map[string]string{"type": kindOf(k.Router)}
	k.Scope.Facts(facts)
	k.Place.Facts(facts)
	k.Network.Facts(facts)
	return label(k.Router, k.Scope, k.Place.Locality), facts
}

// Describe labels the view, and says what counts.
func (k ListenerView) Describe() (string, map[string]string) {
	facts := map[string]string{"type": kindOf(k.Router)}
	if k.Router {
		k.Servers.Facts(facts)
		facts["unprivileged"] = strconv.FormatBool(k.Unprivileged)
	} else {
		facts["targets"] = k.Targets
		facts["outside"] = k.Outside
		k.Ingress.Facts(facts)
		facts["selections"] = k.Set.Selections
	}
	k.Set.Scope.Facts(facts)
	proxyFacts(k.Set.Proxy, facts)
	patchFacts(k.Set.Patches, facts)
	policyFacts(k.Policies, facts)
	policyFacts(k.Set.Proxy.Policies, facts)
	return label(k.Router, k.Set.Scope, k.Set.Proxy.Tracing.Service, k.Targets, string(k.Servers.Gateways)), facts
}

func patchFacts(patches string, out map[string]string) {
	if patches != "" {
		out["patches"] = patches
	}
}

func policyFacts(p listener.Policies, out map[string]string) {
	for name, value := range map[string]string{"peers": p.Peers, "authorization": string(p.Authorization), "tokens": string(p.Tokens)} {
		if value != "" {
			out[name] = value
		}
	}
}

func proxyFacts(p listener.Proxy, out map[string]string) {
	certificateFacts(p.Certificates, out)
	out["intercepted"] = strconv.FormatBool(!p.Dialed)
	if p.Extensions != "" {
		out["extensions"] = string(p.Extensions)
	}
	if p.Transparent {
		out["transparent"] = "true"
	}
	out["metadata exchange"] = strconv.FormatBool(p.MetadataExchange)
	out["alpn"] = strconv.FormatBool(p.ALPN)
	dialingFacts(p.Dialing, out)
	if p.Tracing.Enabled {
		out["service"] = p.Tracing.Service
		out["revision"] = p.Tracing.Revision
		out["cluster"] = p.Tracing.Cluster
		out["mesh"] = p.Tracing.Mesh
	}
}

// Describe labels the view, and says what counts.
func (k RouteView) Describe() (string, map[string]string) {
	facts := map[string]string{"type": kindOf(k.Gateways != ""), "selections": k.Selections}
	if k.Gateways != "" {
		routes.View(k).Servers().Facts(facts)
	} else {
		facts["domain"] = k.Domain
		dialingFacts(k.Dialing, facts)
	}
	patchFacts(k.Patches, facts)
	own := k.Scope
	own.Namespace = k.Namespace
	own.Facts(facts)
	return label(k.Gateways != "", own, k.Selections), facts
}

// Describe labels the view, and says what counts.
func (k NameView) Describe() (string, map[string]string) {
	facts := map[string]string{"network": k.Client.Network}
	dialingFacts(k.Client.Dialing, facts)
	k.Scope.Facts(facts)
	return label(k.Router, k.Scope, k.Client.Network), facts
}

func dialingFacts(d config.Dialing, out map[string]string) {
	out["families"] = d.Families.String()
	out["chosen addresses"] = strconv.FormatBool(d.Resolver != "")
	out["cluster"] = d.Cluster
}

// Describe labels the view, and says what counts.
func (k ExtensionView) Describe() (string, map[string]string) {
	facts := map[string]string{}
	if k.Extensions != "" {
		facts["extensions"] = string(k.Extensions)
	}
	if k.Direct {
		facts["agent"] = "false"
	}
	patchFacts(k.Patches, facts)
	return strings.TrimSpace("extensions " + string(k.Extensions)), facts
}
