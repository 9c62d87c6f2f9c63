package listener

import (
	"net"
	"strconv"

	tcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
)

// tunnel is the request by which connections go through a forward proxy, the one destination; nil where they go straight.
func (f *Forward) tunnel() *tcp.TcpProxy_TunnelingConfig {
	if len(f.Shares) != 1 || f.Shares[0].Weight != 0 {
		return nil
	}
	t := f.Rule.GetTrafficPolicy().GetTunnel()
	if own := cluster.FindSubset(f.Rule, f.Subset).GetTrafficPolicy().GetTunnel(); own != nil {
		t = own
	}
	if t == nil {
		return nil
	}
	return &tcp.TcpProxy_TunnelingConfig{
		Hostname: net.JoinHostPort(t.TargetHost, strconv.FormatUint(uint64(t.TargetPort), 10)),
		UsePost:  t.Protocol == "POST",
	}
}
