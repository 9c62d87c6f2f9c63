package grpc

import (
	security "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
)

// strictMode is the mode of mutual TLS in which a server takes nothing else. In PERMISSIVE a gRPC
// server takes plain text: it can't tell the two apart at one port.
const strictMode = "STRICT"

// mode that a server asks its clients for at a port.
func (v view) mode(port uint32) string {
	if m, ok := v.Modes[port]; ok {
		return m
	}
	return v.Modes[0]
}

// modes are those of PeerAuthentication for a workload: the mesh's, the namespace's, its own, each
// of the oldest that says anything; ports only of its own.
// https://istio.io/latest/docs/reference/config/security/peer_authentication/
func (c *catalog) modes(who identity) map[uint32]string {
	out := map[uint32]string{}
	for _, p := range []*security.PeerAuthentication{
		c.peer(c.mesh.RootNamespace, nil), c.peer(who.namespace, nil), c.peer(who.namespace, who.labels),
	} {
		if m := p.GetMtls().GetMode(); m != security.PeerAuthentication_MutualTLS_UNSET {
			out[0] = m.String()
		}
		for port, m := range p.GetPortLevelMtls() {
			if m.GetMode() != security.PeerAuthentication_MutualTLS_UNSET {
				out[port] = m.GetMode().String()
			}
		}
	}
	return out
}

// peer is the resource of a namespace that selects workloads with these labels, or with none that
// which selects nothing.
func (c *catalog) peer(namespace string, labels map[string]string) *security.PeerAuthentication {
	for _, p := range c.peers {
		selector := p.spec.GetSelector().GetMatchLabels()
		if p.namespace != namespace || (len(selector) > 0) != (labels != nil) {
			continue
		}
		if labels == nil || istio.ServiceSelects(selector, labels) {
			return p.spec
		}
	}
	return nil
}
