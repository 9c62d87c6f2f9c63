// Package exports is the built-in plugin controller/exports: a ServiceExport for each service of a
// Kubernetes cluster.
package exports

import (
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/lead"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	kube.Access
	// Place has the kubeconfig of the cluster, if it isn't the one that Access reaches. Hash is
	// what may differ in the configs of two instances whose kubeconfigs do.
	kube.Place
	Hash string `json:"hash" doc:"Anything; where it changes, as that of another kubeconfig does, a new instance takes the place of the old one."`
	// Domain is the cluster's DNS domain.
	Domain string `json:"domain" doc:"The cluster's DNS domain."`
	// Group and Version are those of ServiceExport.
	Group   string `json:"group" doc:"The API group of ServiceExport."`
	Version string `json:"version" doc:"Its version."`
	// Namespace is that of the lock, which is in the cluster where exports are made, Lease how long
	// it lasts, and Revision what is written beside who holds it.
	Namespace string        `json:"namespace" min:"1" doc:"The namespace, in the cluster where exports are made, of the lock by which replicas and istiods agree on who makes them."`
	Lease     time.Duration `json:"lease" min:"1s" max:"1h" doc:"How long that lock lasts: a replica that leads and can't renew it stops after half of it."`
	Revision  string        `json:"revision" doc:"The control plane's revision, which the lock says; empty: default."`
	// Alone: there is no other replica, and no lock.
	Alone bool `json:"alone" doc:"Nobody else makes exports there: there is no lock."`
}

// leaseName is what istiods call the lock of the same work. Source: Istio,
// pilot/pkg/leaderelection.
const leaseName = "istio-serviceexport-controller-election"

// agent is what it says it is to API servers.
const agent = "coxswain/controller-exports"

// defaults are what counts where the config says nothing.
func defaults() Config {
	return Config{
		Access: kube.DefaultAccess(), Domain: "cluster.local", Group: "multicluster.x-k8s.io", Version: "v1alpha1",
		Namespace: "istio-system", Lease: lead.Duration,
	}
}

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	for field, value := range map[string]string{"domain": c.Domain, "group": c.Group, "version": c.Version} {
		if value == "" {
			return strict.Errorf(field, "is empty")
		}
	}
	if err := c.Place.Check(); err != nil {
		return err
	}
	return c.Access.Check()
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.ControllerPlugin {
	return sdk.ControllerPlugin{
		Name:    "controller/exports",
		Version: "1",
		Reads:   []string{state.Mesh},
		New: sdk.WithConfig(defaults(), func(c Config) (sdk.Controller, error) {
			client, err := c.Client(agent)
			if err != nil {
				return nil, err
			}
			return &controller{config: c, client: client}, nil
		}),
	}
}
