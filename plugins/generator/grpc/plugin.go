// Package grpc is the built-in plugin generator/grpc: what gRPC clients and servers that speak xDS
// themselves get, without a proxy. A client asks for the listener HOST:PORT of a service, and is
// led to routes, clusters and endpoints; a server asks for the listener of its own address.
//
// What gRPC takes of xDS stands in its proposals: A27 (the resources), A28 (routes), A29 (mutual
// TLS), A31 (timeouts), A36 (servers), A41 (authorization), A44 (retries).
package grpc

import (
	"encoding/json"
	"fmt"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Types that it makes.
const (
	listenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"
	routeType    = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	clusterType  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	endpointType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	// Domain is the DNS domain of the mesh's services; cluster.local if absent. Short host names
	// are completed with it.
	Domain string `json:"domain" doc:"DNS domain of the mesh's services"`
	// ClusterAliases are clusters by other ids that clients may say (CLUSTER_ID).
	ClusterAliases map[string]string `json:"clusterAliases" doc:"clusters by other ids that clients may say"`
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.GeneratorPlugin {
	return sdk.GeneratorPlugin{
		Name:    "grpc",
		Version: "1",
		Reads: []string{
			state.Services, state.Endpoints, state.Mesh, kinds.VirtualService, kinds.DestinationRule, kinds.PeerAuthentication, kinds.AuthorizationPolicy,
		},
		// What is absent is known to be so at once, not when the client has waited for long enough.
		Types: []sdk.Type{
			{Url: listenerType}, {Url: routeType, Traits: &sdk.Traits{EmptyWhenAbsent: true, Rank: 40}},
			{Url: clusterType}, {Url: endpointType, Traits: &sdk.Traits{After: clusterType, EmptyWhenAbsent: true, Rank: 20}},
		},
		New: sdk.WithConfig(Config{Domain: "cluster.local"}, func(c Config) (sdk.Generator, error) {
			return &generator{config: c}, nil
		}),
	}
}

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	if c.Domain == "" {
		return strict.Errorf("domain", "is empty; leave it out for cluster.local")
	}
	return nil
}

// view is what a client's resources depend on. It is written as JSON where the SDK asks for a
// view's name.
type view struct {
	Namespace string `json:"namespace"`
	// Locality of the client; empty where no endpoints depend on it.
	Locality string `json:"locality,omitempty"`
	// Cluster of the client; empty where no endpoints depend on it.
	Cluster string `json:"cluster,omitempty"`
	// Labels of the client, those that routes ask for; only routes depend on them.
	Labels map[string]string `json:"labels,omitempty"`
	// Modes of the mutual TLS that a server asks its clients for, by port; 0 for the others. Only
	// listeners depend on them.
	Modes map[uint32]string `json:"modes,omitempty"`
	// Policies that say who may call a server. Only listeners depend on them.
	Policies []string `json:"policies,omitempty"`
}

func (v view) String() string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("a view is no JSON: %v", err)) // it has strings and numbers alone
	}
	return string(b)
}

func parseView(s string) (view, error) {
	var v view
	err := json.Unmarshal([]byte(s), &v)
	return v, err
}
