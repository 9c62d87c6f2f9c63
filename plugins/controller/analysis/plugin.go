// Package analysis is the built-in plugin controller/analysis: it writes into the status of Istio's
// resources what analysis finds of them (validationMessages), as istiod does with
// PILOT_ENABLE_ANALYSIS.
//
// messages.go says what is to stand there, and puts it into a status beside what others say, both
// as pure functions. work.go knows what is left to be written. controller.go analyzes what changes
// and writes it, one object after another, while this replica leads.
package analysis

import (
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/lead"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	// Interval is how long at least lies between two analyses.
	Interval time.Duration `json:"interval" min:"1s" max:"24h" doc:"How long at least lies between two analyses (istiod: PILOT_ANALYSIS_INTERVAL)."`
	// Rate is how many statuses are written a second, at most.
	Rate float64 `json:"rate" doc:"How many statuses are written a second, at most."`
	// Look is how often all statuses are read, to write those again that somebody has changed.
	Look time.Duration `json:"look" min:"1s" max:"24h" doc:"How often all statuses are read, so that what somebody else has changed is written again."`
	// Revision is this control plane's.
	Revision string `json:"revision" doc:"This control plane's revision: statuses of objects whose label istio.io/rev names another one are left alone."`
	// Namespace is that of the Lease, Lease how long it lasts.
	Namespace string        `json:"namespace" min:"1" doc:"The namespace of the Lease by which replicas agree on who writes."`
	Lease     time.Duration `json:"lease" min:"1s" max:"1h" doc:"How long that Lease lasts: a replica that leads and can't renew it stops after half of it."`
	// Alone: there is no other replica, and no Lease.
	Alone bool `json:"alone" doc:"Nobody else writes these statuses: there is no Lease."`
}

// defaults are what counts where the config says nothing. The interval is istiod's.
func defaults() Config {
	return Config{Interval: 10 * time.Second, Rate: 20, Look: 5 * time.Minute, Namespace: "istio-system", Lease: lead.Duration}
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

// leaseName is what istiods call the lock of the same work. Source: Istio,
// pilot/pkg/leaderelection.
const leaseName = "istio-analyze-leader"

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.ControllerPlugin {
	return sdk.ControllerPlugin{
		Name:    "controller/analysis",
		Version: "1",
		Reads:   append(kinds.Tables(), state.Mesh, state.Services, state.Endpoints),
		New: sdk.WithConfig(defaults(), func(c Config) (sdk.Controller, error) {
			return sdk.ControllerFunc(c.run), nil
		}),
	}
}
