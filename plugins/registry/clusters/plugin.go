// Package clusters is the built-in plugin registry/clusters: which other clusters there are, by Secrets that hold their kubeconfigs, or by files.
package clusters

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	kube.Access
	// Namespace is where the Secrets are, Cluster the id of the cluster that they are in.
	Namespace string `json:"namespace"`
	Cluster   string `json:"cluster"`
	// Directory has the kubeconfigs of other clusters, a file each, in place of Secrets.
	Directory string `json:"directory"`
}

const configSchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "kubeconfig": {"type": "string", "description": "File with the API server's address and credentials; without it KUBECONFIG, ~/.kube/config, or the pod's service account."},
    "context": {"type": "string", "description": "Which of its contexts; its current one if absent."},
    "namespace": {"type": "string", "default": "istio-system", "description": "The namespace that the Secrets are in."},
    "cluster": {"type": "string", "default": "Kubernetes", "description": "The id of the cluster that they are in, which has an entry of its own."},
    "directory": {"type": "string", "description": "Directory with the kubeconfigs of other clusters, files *.yaml and *.yml, in place of Secrets."},
    "qps": {"type": "number", "exclusiveMinimum": 0, "default": 80, "description": "Requests a second to the API server, at most."},
    "burst": {"type": "integer", "minimum": 1, "default": 160, "description": "Requests at once, beyond that."}
  }
}`

func parse(config []byte) (Config, error) {
	c := Config{Access: kube.DefaultAccess(), Namespace: "istio-system", Cluster: "Kubernetes"}
	if err := strict.Decode(config, &c); err != nil {
		return c, err
	}
	switch {
	case c.Namespace == "":
		return c, strict.Errorf("namespace", "is empty")
	case c.Cluster == "":
		return c, strict.Errorf("cluster", "is empty")
	}
	return c, c.Check()
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.RegistryPlugin {
	return sdk.RegistryPlugin{
		Name:      "registry/clusters",
		Version:   "1",
		Publishes: []string{Table, kinds.FaultTable},
		New: sdk.WithRawConfig([]byte(configSchema), func(config []byte) (sdk.Registry, error) {
			c, err := parse(config)
			if err != nil {
				return nil, err
			}
			if c.Directory != "" { // there is nothing to ask an API server
				return &registry{config: c}, c.directory()
			}
			client, err := c.Client("coxswain/registry-clusters")
			if err != nil {
				return nil, err
			}
			return &registry{config: c, client: client.Core}, nil
		}),
	}
}
