// Package sds is the built-in plugin generator/sds: certificates, keys and roots for proxies that
// are known and may have them.
//
// asking.go bounds what sources are to read for an account, requests.go says it to them; access.go
// says who may have what, naming.go which rows name it, content.go makes resources, engine.go keeps
// what is wanted up to date, complaints.go says what is wrong.
package sds

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
)

const secretType = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"

// clusterTable has the other clusters, by their ids, as registry/clusters publishes them.
const clusterTable = "clusters"

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	// ClusterAliases are clusters by other ids that proxies may say (CLUSTER_ID).
	ClusterAliases map[string]string `json:"clusterAliases" doc:"Clusters by other ids that proxies may say (CLUSTER_ID)."`
	// Kubernetes: config/secrets is asked for what proxies want, and for what their accounts may
	// have.
	Kubernetes bool `json:"kubernetes" doc:"Whether config/secrets is asked for what proxies want, and for what their accounts may have."`
	// MaxObjects bounds what proxies of an account may make config/secrets follow.
	MaxObjects int `json:"maxObjects" min:"1" doc:"With kubernetes: how many Secrets and ConfigMaps are asked for on behalf of one account, by all its proxies together; more are refused."`
}

// defaults are what counts where the config says nothing.
func defaults() Config { return Config{MaxObjects: 1000} }

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	if c.MaxObjects < 1 {
		return strict.Errorf("maxObjects", "%d is less than 1", c.MaxObjects)
	}
	return nil
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.EnginePlugin {
	return sdk.EnginePlugin{
		Name:    "generator/sds",
		Version: "1",
		Reads: []string{
			secrets.SecretTable, secrets.ConfigMapTable, secrets.Absences, secrets.Rights, kinds.Gateway,
			kinds.DestinationRule, secrets.Grants, clusterTable,
		},
		Secrets: []string{secrets.SecretTable},
		Types:   []sdk.Type{{Url: secretType}},
		// It is a sdk.Source as well.
		Publishes: []string{secrets.Requests},
		New:       sdk.WithConfig(defaults(), func(c Config) (sdk.Engine, error) { return newEngine(c), nil }),
	}
}
