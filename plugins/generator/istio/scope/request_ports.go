package scope

import (
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// requestPorts are the ports at which requests for a host are routed: those of a service that may
// speak HTTP, if the egress listener that rules the port imports it.
func (x *Scopes) requestPorts(c *incr.Ctx, h Host, s *config.Service) []incr.Item[HostPort, *config.Service] {
	var out []incr.Item[HostPort, *config.Service]
	list := x.Sidecars.Egress(c, h.Scope)
	for _, p := range s.Ports {
		protocol, l := config.ParseProtocol(p.Protocol), Ruling(list, p.Number)
		if protocol.IsTCP() || protocol == config.UDP || l == nil && len(list) > 0 || l != nil && !x.Sidecars.importedBy(c, h, s, l, p.Number) {
			continue
		}
		out = append(out, incr.Item[HostPort, *config.Service]{Key: HostPort{h.Scope, h.Host, p.Number}, Value: s})
	}
	return out
}
