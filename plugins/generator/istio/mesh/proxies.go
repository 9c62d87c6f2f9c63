package mesh

import (
	"cmp"

	"google.golang.org/protobuf/proto"
	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// ForListeners are a proxy's own settings, or the mesh's for those that have none.
func (s *Settings) ForListeners(c *incr.Ctx, n *node.Node) listener.Settings {
	out := listener.Settings{
		Config:           s.encodedConfig(c, n),
		HTTP10:           n.Metadata.HTTP10,
		BalancedInbound:  n.Metadata.BalancedInbound,
		BalancedOutbound: n.Metadata.BalancedOutbound,
		Detection:        s.Listeners(c).Detection,
	}
	if t := n.Metadata.IdleTimeout; t != nil {
		out.IdleTimeout, out.Timed = *t, true
	}
	return out
}

// encodedConfig is what listeners heed of a proxy's settings.
func (s *Settings) encodedConfig(c *incr.Ctx, n *node.Node) string {
	out := proto.CloneOf(s.Proxy(c, n))
	if connections := s.connectionsOf(c, n); connections != nil {
		out.ConnectionSettings = connections
	}
	return listener.EncodeConfig(out)
}

// connectionsOf are limits and timeouts of a proxy's connections.
func (s *Settings) connectionsOf(c *incr.Ctx, n *node.Node) *listener.ConnectionSettings {
	return listener.Connections(n.Metadata.ProxyConfig, s.proxyDefaults.Of(c, only), n.Type == node.Router)
}

// Proxy is the proxy's own where it says one, which then counts alone; otherwise the mesh's.
func (s *Settings) Proxy(c *incr.Ctx, n *node.Node) *meshv1.ProxyConfig {
	return cmp.Or(n.Metadata.ProxyConfig, s.proxyDefaults.Of(c, only))
}
