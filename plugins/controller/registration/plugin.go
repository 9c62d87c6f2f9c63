// Package registration is the built-in plugin controller/registration: it makes a WorkloadEntry of
// a WorkloadGroup for each agent that connects and asks for one, and says in it how the workload
// is.
//
// agent.go reads what an agent says of itself, and whether it may; entry.go decides, as pure
// functions, what is to become of an entry; controller.go does that, write.go changes the objects,
// and sweep.go looks after entries of replicas that are gone.
package registration

import (
	"net/netip"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/lead"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	// Grace is how long the entry of an agent that has gone stays.
	Grace time.Duration `json:"grace" min:"1s" max:"24h" doc:"How long the entry of an agent that has gone stays: so long it may come back, to whichever replica."`
	// HealthChecks: what agents say of their workload's health is written into the status.
	HealthChecks bool `json:"healthChecks" doc:"Write what agents say of their workload's health into the status of their entries."`
	// Proxies are ranges of addresses from which agents come by way of a proxy.
	Proxies []string `json:"proxies" doc:"Ranges of addresses (CIDR) of proxies between agents and this control plane: an agent that comes from there is believed the address that it claims; another one must come from that address."`
	// Limits of entries.
	Limits Limits `json:"limits" doc:"How many entries there may be; beyond that no agent is registered."`
	// WritesPerSecond bounds what is asked of the store.
	WritesPerSecond float64 `json:"writesPerSecond" min:"0.1" max:"10000" doc:"How many changes of entries are written in a second, at most."`
	// Namespace is that of the Leases, Lease how long they last.
	Namespace string        `json:"namespace" min:"1" doc:"The namespace of the Leases by which replicas know of each other."`
	Lease     time.Duration `json:"lease" min:"1s" max:"1h" doc:"How long these Leases last: entries of a replica that has not renewed its own for twice as long, and the grace, are those of a dead one."`
	// Alone: there is no other replica, and no Lease.
	Alone bool `json:"alone" doc:"There is no other replica, and no Lease."`

	proxies []netip.Prefix
}

// Limits are how many entries there may be.
type Limits struct {
	Group     int `json:"group" min:"1" doc:"Of one WorkloadGroup."`
	Namespace int `json:"namespace" min:"1" doc:"Of all WorkloadGroups of one namespace."`
	Identity  int `json:"identity" min:"1" doc:"Of agents of one identity."`
}

// defaults are what counts where the config says nothing.
func defaults() Config {
	return Config{
		Grace: 10 * time.Second, HealthChecks: true, Limits: Limits{Group: 1000, Namespace: 5000, Identity: 1000},
		WritesPerSecond: 20, Namespace: "istio-system", Lease: lead.Duration,
	}
}

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	if c.Namespace == "" {
		return strict.Errorf("namespace", "is empty")
	}
	for i, text := range c.Proxies {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return strict.Errorf(strict.At("proxies", i), "%q is no range of addresses, such as 10.0.0.0/8", text)
		}
		c.proxies = append(c.proxies, p.Masked())
	}
	return nil
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.ControllerPlugin {
	return sdk.ControllerPlugin{
		Name:    "controller/registration",
		Version: "1",
		Reads:   []string{kinds.WorkloadEntry, kinds.WorkloadGroup},
		New: sdk.WithConfig(defaults(), func(c Config) (sdk.Controller, error) {
			return newController(c), nil
		}),
	}
}
