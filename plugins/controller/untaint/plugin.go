// Package untaint is the built-in plugin controller/untaint: it takes from nodes of a Kubernetes
// cluster the taint that keeps pods from them until Istio's CNI plugin is ready there, as istiod
// does with PILOT_ENABLE_NODE_UNTAINT_CONTROLLERS.
package untaint

import (
	"cmp"
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
	// Taint is the taint's key.
	Taint string `json:"taint" min:"1" doc:"The key of the taint (istiod: PILOT_NODE_UNTAINT_CONTROLLERS_TAINT_NAME)."`
	// CNINamespace is where the CNI plugin's pods are.
	CNINamespace string `json:"cniNamespace" doc:"The namespace of the CNI plugin's pods (istiod: --cniNamespace); empty: namespace."`
	// Namespace is that of the Lease, Lease how long it lasts.
	Namespace string        `json:"namespace" min:"1" doc:"The namespace of the Lease by which replicas agree on who writes."`
	Lease     time.Duration `json:"lease" min:"1s" max:"1h" doc:"How long that Lease lasts: a replica that leads and can't renew it stops after half of it."`
	// Alone: there is no other replica, and no Lease.
	Alone bool `json:"alone" doc:"Nobody else writes: there is no Lease."`
}

// agent is what it says it is to API servers.
const agent = "coxswain/controller-untaint"

// defaults are what counts where the config says nothing. The taint is istiod's.
func defaults() Config {
	return Config{Access: kube.DefaultAccess(), Taint: "cni.istio.io/not-ready", Namespace: "istio-system",
		Lease: lead.Duration}
}

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	if c.Taint == "" {
		return strict.Errorf("taint", "is empty")
	}
	return c.Access.Check()
}

func (c *Config) cni() string { return cmp.Or(c.CNINamespace, c.Namespace) }

// leaseName is what istiods call the lock of the same work. Source: Istio,
// pilot/pkg/leaderelection.
const leaseName = "istio-node-untaint"

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.ControllerPlugin {
	return sdk.ControllerPlugin{
		Name:    "controller/untaint",
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
