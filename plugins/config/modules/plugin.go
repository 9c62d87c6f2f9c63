// Package modules is the built-in plugin config/modules: it fetches the modules of WasmPlugins and
// TrafficExtensions for proxies that can't, which get them with the filters' configuration.
//
// wants.go says what rows ask for, fetch.go gets one module and keeps it, source.go publishes them,
// and package polling keeps them fresh.
package modules

import (
	"net/netip"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/modules"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	Directory string `json:"directory" doc:"Directory in which modules are kept; it is made. What is in it outlives the plugin, so that it starts though registries are away. Empty: they are kept as long as its process runs."`

	Refresh  time.Duration `json:"refresh" min:"1ms" doc:"How old a module may become whose imagePullPolicy is Always, until it is asked for again."`
	Retry    time.Duration `json:"retry" min:"1ms" doc:"How long to wait after a failure; each further one doubles it."`
	MaxRetry time.Duration `json:"maxRetry" min:"1ms" doc:"The longest wait after failures."`

	Pull Pull `json:"pull" doc:"How modules are fetched."`

	Concurrent int   `json:"concurrent" min:"1" max:"1000" doc:"How many modules are fetched at once."`
	PerOwner   int   `json:"concurrentPerNamespace" min:"1" doc:"How many of them for the resources of one namespace."`
	MaxModules int   `json:"maxPerNamespace" min:"1" max:"1000" doc:"How many resources of one namespace have their module fetched; those of the oldest count."`
	MaxBytes   int64 `json:"maxBytesPerNamespace" min:"1" doc:"How many bytes are kept for one namespace, as they are fetched and unpacked, beyond what is in use."`

	Blocked   []netip.Prefix `json:"blockedCIDRs" doc:"Addresses that are never connected to."`
	LinkLocal bool           `json:"allowLinkLocal" doc:"Whether addresses of the link itself (169.254.0.0/16, fe80::/10) may be connected to."`
}

// Pull is how modules are fetched.
type Pull struct {
	Timeout   time.Duration `json:"timeout" min:"1ms" max:"10m" doc:"How long fetching one may take, all in all."`
	Bytes     int64         `json:"bytes" min:"1" max:"917504" doc:"How many bytes a module may have, packed and unpacked: it goes to proxies in one message."`
	CA        string        `json:"ca" doc:"PEM file with the roots that registries and servers are checked with, in place of the system's."`
	PlainHTTP []string      `json:"plainHTTP" doc:"Registries, HOST or HOST:PORT, that are spoken to in plain text. One on this machine is in any case, unless ca is given."`
}

// defaults are what counts where the config says nothing.
func defaults() Config {
	return Config{
		Refresh: 5 * time.Minute, Retry: time.Second, MaxRetry: 5 * time.Minute,
		Pull:       Pull{Timeout: 30 * time.Second, Bytes: mostModule},
		Concurrent: 16, PerOwner: 4, MaxModules: 50, MaxBytes: 32 << 20,
	}
}

// mostModule is how many bytes a module may have: its row, and the resource that holds it, must fit
// into a message of 1 MiB.
const mostModule = 896 << 10

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.ConfigSourcePlugin {
	return sdk.ConfigSourcePlugin{
		Name:      "config/modules",
		Version:   "1",
		Reads:     []string{kinds.WasmPlugin, kinds.TrafficExtension, secrets.SecretTable, secrets.Absences},
		Publishes: []string{modules.Table, secrets.Named},
		New: sdk.WithConfig(defaults(), func(c Config) (sdk.ConfigSource, error) {
			return &source{config: c, asked: map[secrets.Object]bool{}}, nil
		}),
	}
}
