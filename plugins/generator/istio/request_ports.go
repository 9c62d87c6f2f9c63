package istio

import (
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// requestPorts are the ports at which requests for a host are routed: those of a service that may speak HTTP, if the egress listener
// that rules the port imports it.
func (g *graph) requestPorts(c *incr.Ctx, h host, s *config.Service) []incr.Item[hostPort, *config.Service] {
	var out []incr.Item[hostPort, *config.Service]
	list := g.egressOf(c, h.Scope)
	for _, p := range s.Ports {
		protocol, l := config.ParseProtocol(p.Protocol), ruling(list, p.Number)
		if protocol.IsTCP() || protocol == config.UDP || l == nil && len(list) > 0 || l != nil && !g.importedBy(c, h, s, l, p.Number) {
			continue
		}
		out = append(out, incr.Item[hostPort, *config.Service]{Key: hostPort{h.Scope, h.Host, p.Number}, Value: s})
	}
	return out
}

func (g *graph) importedBy(c *incr.Ctx, h host, s *config.Service, l *egressListener, port uint32) bool {
	for _, in := range g.importsOf(c, h, s) {
		if in.listener.port == l.port && in.listener.bind == l.bind && in.service.Port(port) != nil {
			return true
		}
	}
	return false
}
