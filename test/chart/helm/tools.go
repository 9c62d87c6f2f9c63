//go:build tools

// Package helm pins Helm, with which tests of the chart install it. It is a module of its own:
// nothing of it reaches Coxswain's.
package helm

import (
	_ "helm.sh/helm/v3/cmd/helm"
)
