//go:build tools

// Package tools pins Prometheus and promtool, which `make prometheus` builds.
package tools

import (
	_ "github.com/prometheus/prometheus/cmd/prometheus"
	_ "github.com/prometheus/prometheus/cmd/promtool"
)
