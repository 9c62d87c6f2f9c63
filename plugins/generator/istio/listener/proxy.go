// Package listener makes Envoy listeners: those that catch what a sidecar's workload sends and
// receives, and those of gateways.
package listener

import (
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// Proxy is what listeners depend on of the proxy that runs them, as results: proxies that are equal
// here share listeners.
type Proxy struct {
	// Which of the filters that only Istio's build of Envoy has may be sent.
	MetadataExchange, ALPN bool
	// Certificates is where the proxy has those that it shows as a server.
	Certificates encode.Certificates
	// Dialed: nothing intercepts the workload's connections (INTERCEPTION_MODE NONE); it dials the
	// listeners themselves, on loopback.
	Dialed bool
	// Transparent: connections come with their own source address (INTERCEPTION_MODE TPROXY).
	Transparent bool
	// Ports are those that the proxy has for itself.
	Ports Ports
	// Dialing is how the workload dials services.
	Dialing config.Dialing
	// Policies that count for the workload behind a listener; not for listeners of what it sends.
	Policies Policies
	// Paths says how paths of requests are normalized.
	Paths   Normalization
	Tracing Tracing
	// Sessions of services may stay with an endpoint.
	Sessions bool
	// Router: a gateway.
	Router bool
	// Stats: the filter that keeps Istio's metrics may be sent.
	Stats bool
	// Telemetry are the resources that say what it reports.
	Telemetry config.Keys
	// Extensions that users bring along: those of the root namespace first, the oldest first.
	Extensions config.Keys
	Settings   Settings
}

// Sending is the proxy for listeners of what its workload sends.
func (p Proxy) Sending() Proxy {
	p.Policies = Policies{}
	return p
}

// everywhere is where a listener stands that takes connections to any address.
func (p Proxy) everywhere(port uint32) *core.Address {
	return socketAddress(p.Dialing.Families.Any()[0], port)
}

// everywhereElse is where it stands besides, with dual stack.
func (p Proxy) everywhereElse(port uint32) []*listenerv3.AdditionalAddress {
	if p.Dialing.Families != config.Dual {
		return nil
	}
	return additional(p.Dialing.Families.Any()[1:], port)
}

// Tracing is what spans say about the proxy; the zero value switches tracing off.
type Tracing struct {
	Enabled bool
	// Name is what the proxy calls its service, where spans say that, and Conventional what
	// OpenTelemetry's conventions call it.
	Name, Conventional string
	// Values of Istio's standard tags.
	Cluster, Mesh, Namespace, Service, Revision string
	// Unreachable are clusters of collectors that the proxy hasn't got and without which it refuses
	// listeners, joined by commas: no spans are sent there.
	Unreachable string
}

// Names of the listeners that every sidecar has.
const (
	VirtualInbound  = "virtualInbound"
	VirtualOutbound = "virtualOutbound"
)
