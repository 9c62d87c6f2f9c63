package listener

import (
	"net"
	"strconv"

	tcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
)

// tunnel is the request by which connections go through a forward proxy; nil where they go
// straight. It is the subset's, where they go to one: what the rule says of all doesn't count
// there.
func (f *Forward) tunnel() *tcp.TcpProxy_TunnelingConfig {
	t := f.Rule.GetTrafficPolicy().GetTunnel()
	if f.Subset != "" {
		t = cluster.FindSubset(f.Rule, f.Subset).GetTrafficPolicy().GetTunnel()
	}
	if t == nil || f.Straight {
		return nil
	}
	return &tcp.TcpProxy_TunnelingConfig{
		Hostname: net.JoinHostPort(t.TargetHost, strconv.FormatUint(uint64(t.TargetPort), 10)),
		UsePost:  t.Protocol == "POST",
	}
}
