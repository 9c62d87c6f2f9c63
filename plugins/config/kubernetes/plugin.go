// Package kubernetes is the built-in plugin config/kubernetes: Istio's resources of a Kubernetes
// API server.
//
// events.go says in Events why objects are held, and refused.go what proxies refuse of what was
// made from them. store.go writes them for other plugins. watch.go
// keeps what the API server has of each kind, from when it serves the kind; source.go makes rows of
// it and publishes those that have changed.
package kubernetes

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	kube.Access
	// Revision is that of this control plane; empty: all resources count, whatever their
	// istio.io/rev.
	Revision string `json:"revision" doc:"This control plane's revision: resources whose label istio.io/rev names another one are left out. Without it none are."`
	// Writes: it takes writes of all kinds that it publishes, and of Leases.
	Writes bool `json:"writes" doc:"Write objects for plugins that are granted that (allow.store). Of several sources that publish the same kinds, one may."`
	// Events: an object that is held gets a Kubernetes Event that says why.
	Events bool `json:"events" doc:"Write a Kubernetes Event of each object that is faulty, or from which something was made that proxies refuse, with the reason."`
	// Status: the condition Refused of an object's status says what proxies refuse.
	Status bool `json:"status" doc:"Say in status.conditions (type Refused) of an object that proxies refuse something that was made from it. It needs the rights to get objects, and to update their status."`
	// Uninjected: this control plane puts no proxies into pods, for this reason.
	Uninjected string `json:"uninjected" doc:"Why no plugin of this control plane puts proxies into pods, if none does: namespaces that ask for it (labels istio-injection and istio.io/rev) are told of, with this reason. Empty: nothing is said of them."`
	// DiscoverySelectors: namespaces that the mesh's discoverySelectors leave out are left out.
	DiscoverySelectors bool `json:"discoverySelectors" doc:"Whether the mesh's discoverySelectors say which namespaces count."`
}

// defaults are what counts where the config says nothing.
func defaults() Config {
	return Config{Access: kube.DefaultAccess(), Writes: true, Events: true, DiscoverySelectors: true}
}

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	return c.Access.Check()
}

// tables are those of the kinds that are read.
func tables() []string {
	return slices.Concat(kinds.Tables(), kinds.OtherTables(), []string{secrets.Grants})
}

// read are the kinds of these tables.
func read() []kinds.Kind {
	out := append(kinds.All(), kinds.Grants())
	for _, k := range kinds.Others() {
		out = append(out, kinds.Kind{Table: k.Table, Versions: k.Versions})
	}
	return out
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.ConfigSourcePlugin {
	return sdk.ConfigSourcePlugin{
		Name:      "config/kubernetes",
		Version:   "1",
		Reads:     []string{state.Mesh},
		Publishes: append(tables(), kinds.FaultTable),
		New: sdk.WithConfig(defaults(), func(c Config) (sdk.ConfigSource, error) {
			if kube.ReadOnly() { // what others ask it to write is refused by its client
				c.Events, c.Status = false, false
			}
			s, err := connect(c)
			if err != nil {
				return nil, err
			}
			return newSource(c, s), nil
		}),
	}
}
