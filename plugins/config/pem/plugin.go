// Package pem is the built-in plugin config/pem: certificates and keys from a directory of PEM
// files, a folder each, as Secrets for generator/sds.
//
// folder.go reads one folder, source.go finds and follows all.
package pem

import (
	"os"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	Dir string `json:"dir" required:"true" doc:"The directory, with a folder NAMESPACE/NAME for each Secret; it must exist."`
	// Namespace is that of all folders, which then have no folder for it.
	Namespace string        `json:"namespace" doc:"The namespace of all; folders are then NAME alone."`
	Settle    time.Duration `json:"settle" min:"1ms" doc:"How long a folder must be quiet before it is read."`
	Rescan    time.Duration `json:"rescan" min:"1s" doc:"How often everything is looked at even without an event."`
}

// defaults are what counts where the config says nothing. The settle time outlasts the pauses of a
// tool that writes a certificate and then its key; a pair that doesn't fit is held anyway.
func defaults() Config { return Config{Settle: 50 * time.Millisecond, Rescan: time.Minute} }

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	if _, err := os.ReadDir(c.Dir); err != nil {
		return strict.Errorf("dir", "cannot be read as a directory: %v", err)
	}
	if strings.ContainsAny(c.Namespace, "/@") {
		return strict.Errorf("namespace", "%q is no name of a namespace", c.Namespace)
	}
	return nil
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.ConfigSourcePlugin {
	return sdk.ConfigSourcePlugin{
		Name:      "config/pem",
		Version:   "1",
		Publishes: []string{secrets.SecretTable, kinds.FaultTable},
		Secrets:   []string{secrets.SecretTable},
		New:       sdk.WithConfig(defaults(), func(c Config) (sdk.ConfigSource, error) { return newSource(c), nil }),
	}
}
