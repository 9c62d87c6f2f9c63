// Package istio is the built-in plugin generator/istio: clusters, endpoints, listeners and routes
// for sidecars and gateways, with the meaning and the names that istiod gives them.
//
// What resources look like is in packages below, as pure functions: config (rows), node (proxies),
// cluster, endpoint, listener, route and others. What they are made from, and what must be made
// again, is in packages over sdk/incr, from tables (rows) and mesh (settings) up to clusters,
// listeners, routes and nametables; placement says which views a proxy is in, and serving is the
// side towards the core. wiring.go gives each what it needs. See docs/guides/istio-feature.md.
package istio

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authn"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/internal/modules"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	// Domain is the DNS domain of the mesh's services; cluster.local if absent. Short host names in
	// resources are completed with it.
	Domain string `json:"domain" doc:"DNS domain of the mesh's services"`
	// DualStack lets proxies that have addresses of both families use both (istiod:
	// ISTIO_DUAL_STACK).
	DualStack bool `json:"dualStack" doc:"proxies with addresses of both families use both"`
	// QUICListeners offers HTTP/3 at HTTPS servers of gateways whose service has their port for UDP
	// too (istiod: PILOT_ENABLE_QUIC_LISTENERS).
	QUICListeners bool `json:"quicListeners" doc:"gateways offer HTTP/3 where their service passes UDP"`
	// TLSOnSidecarIngress lets ports that a Sidecar names open TLS of their own, where mutual TLS
	// is off (istiod: ENABLE_TLS_ON_SIDECAR_INGRESS).
	TLSOnSidecarIngress bool `json:"tlsOnSidecarIngress" doc:"ports that Sidecars name may open TLS of their own"`
	// PersistentSessions lets services say by a label that sessions stay with an endpoint (istiod:
	// PILOT_ENABLE_PERSISTENT_SESSION_FILTER).
	PersistentSessions bool `json:"persistentSessions" doc:"services may say by a label that sessions stay with an endpoint"`
	// JWKSFetch says who fetches key sets that rules name by URI: coxswain (if absent), proxy or
	// hybrid (istiod: PILOT_JWT_ENABLE_REMOTE_JWKS).
	JWKSFetch string `json:"jwksFetch" enum:"coxswain,hybrid,proxy" doc:"who fetches key sets that rules name by URI"`
	// EntryNetworks looks for endpoints of ServiceEntries that don't name their network in
	// MeshNetworks, as istiod does beside Kubernetes.
	EntryNetworks bool `json:"entryNetworks" doc:"endpoints of ServiceEntries are looked for in MeshNetworks"`
	// ClusterAliases are clusters by other ids that proxies may say (CLUSTER_ID); a cluster has one
	// at most.
	ClusterAliases map[string]string `json:"clusterAliases" doc:"clusters by other ids that proxies may say"`
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.EnginePlugin {
	return sdk.EnginePlugin{
		Name:    "istio",
		Version: "1",
		Reads: []string{
			state.Services, state.ClusterServices, state.Endpoints, state.Workloads, state.Namespaces, state.Mesh, state.Networks,
			state.NetworkGateways,
			config.VirtualServices, config.DestinationRules, config.Gateways, config.Sidecars, config.Telemetries,
			config.PeerAuthentications, config.RequestAuthentications, config.AuthorizationPolicies, config.KeySets,
			config.EnvoyFilters, config.TrafficExtensions, config.WasmPlugins, modules.Table,
		},
		Types: []sdk.Type{
			{Url: encode.ClusterType, Checked: true}, {Url: encode.ListenerType, Checked: true},
			// As istiod, which leaves no proxy waiting for endpoints and routes that there are not.
			{Url: encode.EndpointType, Checked: true, Traits: &sdk.Traits{After: encode.ClusterType, EmptyWhenAbsent: true, Rank: 20}},
			{Url: encode.RouteType, Checked: true, Traits: &sdk.Traits{EmptyWhenAbsent: true, Rank: 40}},
			{Url: encode.NameTableType, Checked: true}, {Url: encode.ExtensionType, Checked: true},
		},
		New: sdk.WithConfig(defaults(), func(c Config) (sdk.Engine, error) { return judged(c), nil }),
	}
}

// defaults are what counts where the config says nothing.
func defaults() Config {
	return Config{Domain: "cluster.local", JWKSFetch: string(authn.FetchHere)}
}

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	if c.Domain == "" || strings.HasPrefix(c.Domain, ".") || strings.ContainsAny(c.Domain, "/ ") {
		return &sdk.FieldError{Field: "domain", Err: fmt.Errorf("%q is no DNS domain, such as cluster.local", c.Domain)}
	}
	of := map[string]string{}
	for _, alias := range slices.Sorted(maps.Keys(c.ClusterAliases)) {
		cluster := c.ClusterAliases[alias]
		if cluster == "" || of[cluster] != "" {
			return &sdk.FieldError{Field: "clusterAliases." + alias, Err: fmt.Errorf("%q has another alias, %q, or is empty", cluster, of[cluster])}
		}
		of[cluster] = alias
	}
	return nil
}
