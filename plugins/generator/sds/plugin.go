// Package sds is the built-in plugin generator/sds: certificates, keys and roots for proxies that are
// known and may have them.
//
// reference.go reads the names that are asked for, access.go says who may have what, content.go makes
// resources, engine.go keeps what is wanted up to date.
package sds

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/sdk"
)

const secretType = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	// ClusterAliases are clusters by other ids that proxies may say (CLUSTER_ID).
	ClusterAliases map[string]string `json:"clusterAliases" doc:"Clusters by other ids that proxies may say (CLUSTER_ID)."`
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.EnginePlugin {
	return sdk.EnginePlugin{
		Name:    "generator/sds",
		Version: "1",
		Reads:   []string{secrets.SecretTable, secrets.ConfigMapTable, kinds.Gateway, grantTable},
		Types:   []sdk.Type{{Url: secretType}},
		New:     sdk.WithConfig(Config{}, func(c Config) (sdk.Engine, error) { return newEngine(c), nil }),
	}
}
