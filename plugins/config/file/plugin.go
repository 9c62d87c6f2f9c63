// Package file is the config source that reads Istio's resources from a directory of YAML and JSON
// files and follows what happens to them.
package file

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Plugin returns config/file.
func Plugin() sdk.ConfigSourcePlugin {
	return sdk.ConfigSourcePlugin{
		Name:      "config/file",
		Version:   "1",
		Publishes: slices.Concat(kinds.Tables(), kinds.OtherTables(), []string{secrets.SecretTable, secrets.ConfigMapTable, secrets.Grants, kinds.FaultTable}),
		Secrets:   []string{secrets.SecretTable},
		New:       sdk.WithConfig(defaults(), func(c Config) (sdk.ConfigSource, error) { return New(c), nil }),
	}
}
