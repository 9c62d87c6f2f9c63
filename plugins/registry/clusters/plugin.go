// Package clusters is the built-in plugin registry/clusters: which other clusters there are, by
// Secrets that hold their kubeconfigs, or by files.
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
	Namespace string `json:"namespace" doc:"The namespace that the Secrets are in."`
	Cluster   string `json:"cluster" doc:"The id of the cluster that they are in, which has an entry of its own."`
	// Directory has the kubeconfigs of other clusters, a file each, in place of Secrets.
	Directory string `json:"directory" doc:"Directory with the kubeconfigs of other clusters, files *.yaml and *.yml, in place of Secrets."`
}

// defaults are what counts where the config says nothing.
func defaults() Config {
	return Config{Access: kube.DefaultAccess(), Namespace: "istio-system", Cluster: "Kubernetes"}
}

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	switch {
	case c.Namespace == "":
		return strict.Errorf("namespace", "is empty")
	case c.Cluster == "":
		return strict.Errorf("cluster", "is empty")
	}
	return c.Access.Check()
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.RegistryPlugin {
	return sdk.RegistryPlugin{
		Name:      "registry/clusters",
		Version:   "1",
		Publishes: []string{Table, kinds.FaultTable},
		New: sdk.WithConfig(defaults(), func(c Config) (sdk.Registry, error) {
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
