// Package istio is the built-in plugin generator/istio: clusters, endpoints, listeners and routes for sidecars and gateways,
// with the meaning and the names that istiod gives them.
//
// What resources look like is in packages below, as pure functions: config (rows), node (proxies),
// cluster, endpoint, listener, route and others. What they are made from, and what must be made
// again, is in packages over sdk/incr, from tables (rows) and mesh (settings) up to clusters,
// listeners, routes and nametables; placement says which views a proxy is in, and serving is the
// side towards the core. wiring.go gives each what it needs. See docs/guides/istio-feature.md.
package istio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authn"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	// Domain is the DNS domain of the mesh's services; cluster.local if absent. Short host names in resources are completed with it.
	Domain string `json:"domain"`
	// DualStack lets proxies that have addresses of both families use both (istiod: ISTIO_DUAL_STACK).
	DualStack bool `json:"dualStack"`
	// QUICListeners offers HTTP/3 at HTTPS servers of gateways whose service has their port for UDP too (istiod:
	// PILOT_ENABLE_QUIC_LISTENERS).
	QUICListeners bool `json:"quicListeners"`
	// TLSOnSidecarIngress lets ports that a Sidecar names open TLS of their own, where mutual TLS is off (istiod:
	// ENABLE_TLS_ON_SIDECAR_INGRESS).
	TLSOnSidecarIngress bool `json:"tlsOnSidecarIngress"`
	// PersistentSessions lets services say by a label that sessions stay with an endpoint (istiod: PILOT_ENABLE_PERSISTENT_SESSION_FILTER).
	PersistentSessions bool `json:"persistentSessions"`
	// JWKSFetch says who fetches key sets that rules name by URI: coxswain (if absent), proxy or hybrid (istiod: PILOT_JWT_ENABLE_REMOTE_JWKS).
	JWKSFetch string `json:"jwksFetch"`
	// EntryNetworks looks for endpoints of ServiceEntries that don't name their network in MeshNetworks, as istiod does beside Kubernetes.
	EntryNetworks bool `json:"entryNetworks"`
	// ClusterAliases are clusters by other ids that proxies may say (CLUSTER_ID); a cluster has one at most.
	ClusterAliases map[string]string `json:"clusterAliases"`
}

const schema = `{"type":"object","additionalProperties":false,"properties":{"domain":{"type":"string",` +
	`"description":"DNS domain of the mesh's services","default":"cluster.local"},"dualStack":{"type":"boolean",` +
	`"description":"proxies with addresses of both families use both","default":false},"quicListeners":{"type":"boolean",` +
	`"description":"gateways offer HTTP/3 where their service passes UDP","default":false},"tlsOnSidecarIngress":{"type":"boolean",` +
	`"description":"ports that Sidecars name may open TLS of their own","default":false},"persistentSessions":{"type":"boolean",` +
	`"description":"services may say by a label that sessions stay with an endpoint","default":false},"jwksFetch":{"type":"string",` +
	`"enum":["coxswain","hybrid","proxy"],"description":"who fetches key sets that rules name by URI","default":"coxswain"},` +
	`"entryNetworks":{"type":"boolean","description":"endpoints of ServiceEntries are looked for in MeshNetworks","default":false},` +
	`"clusterAliases":{"type":"object","additionalProperties":{"type":"string"},"description":"clusters by other ids that proxies may say"}}}`

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
			config.EnvoyFilters, config.TrafficExtensions, config.WasmPlugins,
		},
		Types: []sdk.Type{
			{Url: encode.ClusterType, Checked: true}, {Url: encode.ListenerType, Checked: true},
			// As istiod, which leaves no proxy waiting for endpoints and routes that there are not.
			{Url: encode.EndpointType, Checked: true, Traits: &sdk.Traits{After: encode.ClusterType, EmptyWhenAbsent: true, Rank: 20}},
			{Url: encode.RouteType, Checked: true, Traits: &sdk.Traits{EmptyWhenAbsent: true, Rank: 40}},
			{Url: encode.NameTableType, Checked: true}, {Url: encode.ExtensionType, Checked: true},
		},
		New: sdk.WithRawConfig([]byte(schema), func(raw []byte) (sdk.Engine, error) {
			c, err := parseConfig(raw)
			if err != nil {
				return nil, err
			}
			return newEngine(c), nil
		}),
	}
}

func parseConfig(raw []byte) (Config, error) {
	c := Config{Domain: "cluster.local"}
	if len(bytes.TrimSpace(raw)) > 0 {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(&c); err != nil {
			return c, fmt.Errorf("generator/istio: %w", err)
		}
	}
	if c.Domain == "" || strings.HasPrefix(c.Domain, ".") || strings.ContainsAny(c.Domain, "/ ") {
		return c, &sdk.FieldError{Field: "domain", Err: fmt.Errorf("%q is no DNS domain, such as cluster.local", c.Domain)}
	}
	of := map[string]string{}
	for _, alias := range slices.Sorted(maps.Keys(c.ClusterAliases)) {
		cluster := c.ClusterAliases[alias]
		if cluster == "" || of[cluster] != "" {
			return c, &sdk.FieldError{Field: "clusterAliases." + alias, Err: fmt.Errorf("%q has another alias, %q, or is empty", cluster, of[cluster])}
		}
		of[cluster] = alias
	}
	switch f := authn.Fetch(c.JWKSFetch); f {
	case "", authn.FetchHere, authn.FetchHybrid, authn.FetchProxy:
	default:
		return c, &sdk.FieldError{Field: "jwksFetch", Err: fmt.Errorf("unknown value %q: want coxswain, hybrid or proxy", f)}
	}
	return c, nil
}
