// Package status is the built-in plugin controller/status: it writes into objects of the Gateway
// API what is to be said of them.
//
// config/gatewayapi publishes what that is (the table gatewaystatuses); reach.go adds where
// Gateways can be reached, and refused.go what proxies refuse. merge.go, a pure function, puts it
// into an object's status beside what others say there, and takes it out again. writer.go knows
// what is left to be written, and controller.go writes it, one object after another, while this
// replica leads, and makes GatewayClasses. takeback.go takes all of it back.
package status

import (
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	judge "github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi/status"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/lead"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	// Controller is the controllerName of classes that are ours, as config/gatewayapi has it.
	Controller string `json:"controller" min:"3" doc:"The controllerName of GatewayClasses that are served, as config/gatewayapi has it: entries of statuses with this name are ours."`
	// Classes: GatewayClasses that istiod makes are made where they are missing.
	Classes bool `json:"classes" doc:"Create the GatewayClasses istio and istio-remote where there are none, as istiod does. Not with another controller than istio.io/gateway-controller."`
	// Revision is this control plane's; the Lease is that of its istiods.
	Revision string `json:"revision" doc:"This control plane's revision: statuses of objects whose label istio.io/rev names another one are left alone, and the Lease is that of this revision."`
	// Namespace is that of the Lease, Lease how long it lasts.
	Namespace string        `json:"namespace" min:"1" doc:"The namespace of the Lease by which replicas, and istiods, agree on who writes."`
	Lease     time.Duration `json:"lease" min:"1s" max:"1h" doc:"How long that Lease lasts: a replica that leads and can't renew it stops after half of it."`
	// Alone: there is no other replica, and no Lease.
	Alone bool `json:"alone" doc:"Nobody else writes these statuses: there is no Lease."`
	// Rate is how many statuses are written a second, at most.
	Rate float64 `json:"rate" doc:"How many statuses are written a second, at most."`
	// Look is how often all statuses are read, to write those again that somebody has changed.
	Look time.Duration `json:"look" min:"1s" max:"24h" doc:"How often all statuses are read, so that what somebody else has changed of ours is written again."`
}

// defaults are what counts where the config says nothing.
func defaults() Config {
	return Config{Controller: string(judge.Controller), Classes: true, Namespace: "istio-system", Lease: lead.Duration, Rate: 40, Look: 5 * time.Minute}
}

// mostRate is how many statuses may be written a second: as many as an API server bears.
const mostRate = 1000

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	if !(c.Rate > 0) || c.Rate > mostRate {
		return strict.Errorf("rate", "%v is not more than 0 and at most %d", c.Rate, mostRate)
	}
	return nil
}

// controllers are the names by which statuses know us.
func (c *Config) controllers() []string {
	return []string{c.Controller, string(judge.MeshController)}
}

// leaseName is that of the istiods of the same revision. Source: Istio, pilot/pkg/leaderelection.
func (c *Config) leaseName() string {
	if c.Revision == "" {
		return "istio-gateway-status-leader-default"
	}
	return "istio-gateway-status-leader-" + c.Revision
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.ControllerPlugin {
	return sdk.ControllerPlugin{
		Name:    "controller/status",
		Version: "1",
		Reads:   []string{gatewayapi.Statuses, gatewayapi.GatewayClass, kinds.Gateway, kinds.VirtualService, state.Services, state.Endpoints},
		New: sdk.WithConfig(defaults(), func(c Config) (sdk.Controller, error) {
			return newController(c), nil
		}),
	}
}
