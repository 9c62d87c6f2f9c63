package listener

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
)

// Ports are those that a proxy has for itself.
type Ports struct {
	// Outbound and Inbound are where intercepted connections come (MeshConfig.proxyListenPort and
	// proxyInboundListenPort).
	Outbound, Inbound uint32
	// Status and Metrics are served by listeners of the bootstrap; 0 for none.
	Status, Metrics uint32
	// Proxy is where the workload finds a proxy for HTTP (MeshConfig.proxyHttpPort); 0 for none.
	Proxy uint32
	// Unprivileged: the proxy can't open ports below 1024.
	Unprivileged bool
}

// privileged ports can't be opened by a process without privileges.
const privileged = 1024

// Free reports whether a listener at a place doesn't get in the way of those that the proxy has
// anyhow, and can be opened if it is to be.
func (p *Ports) Free(b Bind, f config.Families, opened bool) bool {
	switch {
	case opened && p.Unprivileged && b.Port > 0 && b.Port < privileged:
		return false
	case b.Address != f.Any()[0]:
		return true
	}
	return b.Port == 0 || !slices.Contains([]uint32{p.Outbound, p.Inbound, p.Status, p.Metrics}, b.Port)
}

// FreeInbound reports the same of a port that a Sidecar names: where connections are intercepted is
// no matter to it.
func (p Ports) FreeInbound(b Bind, f config.Families, opened bool) bool {
	p.Outbound, p.Inbound = 0, 0
	return p.Free(b, f, opened)
}
