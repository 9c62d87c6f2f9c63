//go:build tools

// Package servers pins the registry with which plugins as artifacts are tested. It is a module of
// its own: nothing of it reaches Coxswain's.
package servers

import (
	_ "github.com/distribution/distribution/v3/cmd/registry"
)
