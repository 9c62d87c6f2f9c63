// Package ingress is the built-in plugin controller/ingress: it writes into the status of Ingresses
// that are served here at which addresses they are reached.
//
// choose.go says what each status is to have, as a function of a state; controller.go writes what
// differs.
package ingress

import (
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/ingress"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/lead"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	// Domain is the DNS domain of the mesh's services, Cluster the cluster whose addresses count,
	// Gateways the namespace of the service before gateways.
	Domain   string `json:"domain" min:"1" doc:"DNS domain of the mesh's services."`
	Cluster  string `json:"cluster" min:"1" doc:"The cluster whose load balancers count: that of registry/kubernetes."`
	Gateways string `json:"gateways" min:"1" doc:"The namespace of the service that the mesh's ingressService names, as istiod's K8S_INGRESS_NS."`
	// Namespace is that of the Lease by which replicas agree on who writes, Lease how long it
	// lasts.
	Namespace string        `json:"namespace" min:"1" doc:"The namespace of the Lease by which replicas, istiod's too, agree on who writes."`
	Lease     time.Duration `json:"lease" min:"1s" max:"1h" doc:"How long that Lease lasts: a replica that leads and can't renew it stops after half of it."`
	// Alone: there is no other replica, and no Lease.
	Alone bool `json:"alone" doc:"Nobody else writes: there is no Lease."`
}

// defaults are what counts where the config says nothing.
func defaults() Config {
	return Config{Domain: "cluster.local", Cluster: "Kubernetes", Gateways: "istio-system", Namespace: "istio-system", Lease: lead.Duration}
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.ControllerPlugin {
	return sdk.ControllerPlugin{
		Name:    "controller/ingress",
		Version: "1",
		Reads:   []string{ingress.Ingress, ingress.Class, state.Mesh + "@sources", state.Services + "@sources"},
		New: sdk.WithConfig(defaults(), func(c Config) (sdk.Controller, error) {
			return sdk.ControllerFunc(c.run), nil
		}),
	}
}
