//go:build tools

// Package tools pins Kiali's server, which `make kiali` builds.
package tools

import _ "github.com/kiali/kiali"
