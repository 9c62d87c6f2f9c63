// Package monitoring tests what people watch a control plane by: dashboards and alerts ask for what
// /metrics has, a real Prometheus that scrapes a control plane answers each of their queries, and
// each alert fires when it should.
package monitoring
