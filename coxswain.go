// Package coxswain is a control plane for Envoy and every other xDS client, made of plugins. This package holds only the set of plugins that
// runs where no other is named; the program is cmd/coxswain.
package coxswain

import _ "embed"

//go:embed plugins.yaml
var defaultSet []byte

// DefaultSet returns the repository's plugins.yaml.
func DefaultSet() []byte { return append([]byte(nil), defaultSet...) }
