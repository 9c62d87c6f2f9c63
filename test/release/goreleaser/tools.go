//go:build tools

// Package goreleaser pins GoReleaser, which makes releases. It is a module of its own: nothing of
// it reaches Coxswain's.
package goreleaser

import (
	_ "github.com/goreleaser/goreleaser/v2"
)
