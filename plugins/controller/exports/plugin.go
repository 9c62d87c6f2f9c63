// Package exports is the built-in plugin controller/exports: a ServiceExport for each service of a Kubernetes cluster.
package exports

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	kube.Access
	// Place has the kubeconfig of the cluster, if it isn't the one that Access reaches. Hash is what may differ in the configs of two instances whose kubeconfigs do.
	kube.Place
	Hash string `json:"hash"`
	// Domain is the cluster's DNS domain.
	Domain string `json:"domain"`
	// Group and Version are those of ServiceExport.
	Group   string `json:"group"`
	Version string `json:"version"`
}

const configSchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "kubeconfig": {"type": "string", "description": "File with the API server's address and credentials; without it KUBECONFIG, ~/.kube/config, or the pod's service account."},
    "context": {"type": "string", "description": "Which of its contexts; its current one if absent."},
    "remote": {"type": "string", "description": "NAMESPACE/SECRET/KEY: where the kubeconfig of the cluster stands, if it is another one than that of kubeconfig and context, which has the Secret; or file:NAME of a file in directory."},
    "directory": {"type": "string", "description": "Where kubeconfigs are that remote names as files."},
    "hash": {"type": "string", "description": "Anything; where it changes, as that of another kubeconfig does, a new instance takes the place of the old one."},
    "domain": {"type": "string", "default": "cluster.local", "description": "The cluster's DNS domain."},
    "group": {"type": "string", "default": "multicluster.x-k8s.io", "description": "The API group of ServiceExport."},
    "version": {"type": "string", "default": "v1alpha1", "description": "Its version."},
    "qps": {"type": "number", "exclusiveMinimum": 0, "default": 80, "description": "Requests a second to the API server, at most."},
    "burst": {"type": "integer", "minimum": 1, "default": 160, "description": "Requests at once, beyond that."}
  }
}`

// agent is what it says it is to API servers.
const agent = "coxswain/controller-exports"

func parse(config []byte) (Config, error) {
	c := Config{Access: kube.DefaultAccess(), Domain: "cluster.local", Group: "multicluster.x-k8s.io", Version: "v1alpha1"}
	if err := strict.Decode(config, &c); err != nil {
		return c, err
	}
	for field, value := range map[string]string{"domain": c.Domain, "group": c.Group, "version": c.Version} {
		if value == "" {
			return c, strict.Errorf(field, "is empty")
		}
	}
	if err := c.Place.Check(); err != nil {
		return c, err
	}
	return c, c.Access.Check()
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.ControllerPlugin {
	return sdk.ControllerPlugin{
		Name:    "controller/exports",
		Version: "1",
		Reads:   []string{state.Mesh},
		New: sdk.WithRawConfig([]byte(configSchema), func(config []byte) (sdk.Controller, error) {
			c, err := parse(config)
			if err != nil {
				return nil, err
			}
			client, err := c.Client(agent)
			if err != nil {
				return nil, err
			}
			return &controller{config: c, client: client}, nil
		}),
	}
}
