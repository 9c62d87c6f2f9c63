// Package kubernetes is the built-in plugin registry/kubernetes: Services, EndpointSlices, Pods, Nodes and Namespaces of a cluster.
//
// watch.go keeps what the API server has, service.go, endpoint.go, pod.go and protocol.go make rows of it, registry.go publishes
// those of what has changed.
package kubernetes

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	kube.Access
	// Cluster is the cluster's id, Domain its DNS domain.
	Cluster string `json:"cluster"`
	Domain  string `json:"domain"`
	// DiscoverySelectors: namespaces that the mesh's discoverySelectors leave out are left out.
	DiscoverySelectors bool `json:"discoverySelectors"`
}

const configSchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "kubeconfig": {"type": "string", "description": "File with the API server's address and credentials; without it KUBECONFIG, ~/.kube/config, or the pod's service account."},
    "context": {"type": "string", "description": "Which of its contexts; its current one if absent."},
    "cluster": {"type": "string", "default": "Kubernetes", "description": "The cluster's id, which endpoints are said to be in."},
    "domain": {"type": "string", "default": "cluster.local", "description": "The cluster's DNS domain: services are NAME.NAMESPACE.svc.DOMAIN."},
    "discoverySelectors": {"type": "boolean", "default": true, "description": "Whether the mesh's discoverySelectors say which namespaces count."},
    "qps": {"type": "number", "exclusiveMinimum": 0, "default": 80, "description": "Requests a second to the API server, at most."},
    "burst": {"type": "integer", "minimum": 1, "default": 160, "description": "Requests at once, beyond that."}
  }
}`

func parse(config []byte) (Config, error) {
	c := Config{Access: kube.DefaultAccess(), Cluster: "Kubernetes", Domain: "cluster.local", DiscoverySelectors: true}
	if err := strict.Decode(config, &c); err != nil {
		return c, err
	}
	switch {
	case c.Cluster == "":
		return c, strict.Errorf("cluster", "is empty")
	case c.Domain == "":
		return c, strict.Errorf("domain", "is empty")
	}
	return c, c.Check()
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Name:         "registry/kubernetes",
		Version:      "1",
		Reads:        []string{state.Mesh},
		Publishes:    []string{state.Services, state.Endpoints, state.Workloads, state.Namespaces},
		ConfigSchema: []byte(configSchema),
		Kind: sdk.RegistryKind(func(config []byte) (sdk.Registry, error) {
			c, err := parse(config)
			if err != nil {
				return nil, err
			}
			client, err := connect(c)
			if err != nil {
				return nil, err
			}
			return &registry{config: c, client: client}, nil
		}),
	}
}
