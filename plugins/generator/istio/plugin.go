// Package istio is the built-in plugin generator/istio: clusters, endpoints, listeners and routes for sidecars and gateways,
// with the meaning and the names that istiod gives them.
//
// What resources look like is in the packages below, as pure functions: config (rows), node (proxies), cluster, endpoint, listener, route. This package
// says what they are made from and what must be made again: graph.go and its neighbours over sdk/incr, engine.go towards the core.
package istio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

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
}

const schema = `{"type":"object","additionalProperties":false,"properties":{"domain":{"type":"string",` +
	`"description":"DNS domain of the mesh's services","default":"cluster.local"},"dualStack":{"type":"boolean",` +
	`"description":"proxies with addresses of both families use both","default":false},"quicListeners":{"type":"boolean",` +
	`"description":"gateways offer HTTP/3 where their service passes UDP","default":false}}}`

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Name:    "istio",
		Version: "1",
		Reads: []string{
			state.Services, state.Endpoints, state.Mesh,
			config.VirtualServices, config.DestinationRules, config.Gateways, config.Sidecars, config.Telemetries,
			config.PeerAuthentications, config.RequestAuthentications, config.AuthorizationPolicies, config.KeySets,
		},
		Types: []sdk.Type{
			{Url: encode.ClusterType}, {Url: encode.EndpointType}, {Url: encode.ListenerType}, {Url: encode.RouteType},
			{Url: encode.NameTableType},
		},
		ConfigSchema: []byte(schema),
		Engine: func(raw []byte) (sdk.Engine, error) {
			c, err := parseConfig(raw)
			if err != nil {
				return nil, err
			}
			return newEngine(c), nil
		},
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
	return c, nil
}
