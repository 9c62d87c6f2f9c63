// Package kubernetes is the built-in plugin registry/kubernetes: Services, EndpointSlices, Pods, Nodes and Namespaces of a cluster.
//
// watch.go keeps what the API server has, service.go, endpoint.go, pod.go and protocol.go make rows of it, registry.go publishes
// those of what has changed.
package kubernetes

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	// Kubeconfig is a file; empty: KUBECONFIG's or ~/.kube/config, and the service account in a pod. Context is one of its contexts.
	Kubeconfig string `json:"kubeconfig"`
	Context    string `json:"context"`
	// Cluster is the cluster's id, Domain its DNS domain.
	Cluster string `json:"cluster"`
	Domain  string `json:"domain"`
	// QPS and Burst limit requests to the API server.
	QPS   float64 `json:"qps"`
	Burst int     `json:"burst"`
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
    "qps": {"type": "number", "exclusiveMinimum": 0, "default": 80, "description": "Requests a second to the API server, at most."},
    "burst": {"type": "integer", "minimum": 1, "default": 160, "description": "Requests at once, beyond that."}
  }
}`

func parse(config []byte) (Config, error) {
	c := Config{Cluster: "Kubernetes", Domain: "cluster.local", QPS: 80, Burst: 160}
	if err := strict.Decode(config, &c); err != nil {
		return c, err
	}
	switch {
	case c.Cluster == "":
		return c, strict.Errorf("cluster", "is empty")
	case c.Domain == "":
		return c, strict.Errorf("domain", "is empty")
	case c.QPS <= 0:
		return c, strict.Errorf("qps", "%v is not more than 0", c.QPS)
	case c.Burst < 1:
		return c, strict.Errorf("burst", "%d is less than 1", c.Burst)
	}
	return c, nil
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.Plugin {
	return sdk.Plugin{
		Name:         "registry/kubernetes",
		Version:      "1",
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
