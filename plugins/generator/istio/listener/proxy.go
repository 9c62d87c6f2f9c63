// Package listener makes Envoy listeners: those that catch what a sidecar's workload sends and receives, and those of gateways.
package listener

// Proxy is what listeners depend on of the proxy that runs them, as results: proxies that are equal here share listeners.
type Proxy struct {
	// Which of the filters that only Istio's build of Envoy has may be sent.
	MetadataExchange, ALPN bool
	// NoAgent: nobody serves the proxy certificates, so that nothing may wait for them.
	NoAgent bool
	// Dialed: nothing intercepts the workload's connections (INTERCEPTION_MODE NONE); it dials the listeners themselves, on loopback.
	Dialed bool
	// Transparent: connections come with their own source address (INTERCEPTION_MODE TPROXY).
	Transparent bool
	Tracing     Tracing
}

// Tracing is what spans say about the proxy; the zero value switches tracing off.
type Tracing struct {
	Enabled  bool
	Sampling float64 // percent
	// Values of Istio's standard tags.
	Cluster, Mesh, Namespace, Service, Revision string
}

// Names of the listeners that every sidecar has, and their ports.
const (
	VirtualInbound  = "virtualInbound"
	VirtualOutbound = "virtualOutbound"
	inboundPort     = 15006
	outboundPort    = 15001
	anyAddress      = "0.0.0.0"
	loopback        = "127.0.0.1"
)
