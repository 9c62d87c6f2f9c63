package listener

import (
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	mongo "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/mongo_proxy/v3"
	tcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/extension"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/telemetry"
)

// statsFilter keeps Istio's metrics.
const statsFilter = "istio.stats"

// Reporting is a proxy, and what it reports of the side of its listeners.
type Reporting struct {
	Proxy
	// Reports may be nil: nothing.
	Reports *telemetry.Reports
	// Extensions that users bring along.
	Extensions extension.List
}

// requestStats are filters that keep metrics of requests.
func (p *Reporting) requestStats() []*hcm.HttpFilter {
	if p.Reports == nil || !p.Stats {
		return nil
	}
	var out []*hcm.HttpFilter
	for _, s := range p.Reports.Stats {
		out = append(out, &hcm.HttpFilter{Name: statsFilter, ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: s}})
	}
	return out
}

// connectionStats are filters that keep metrics of connections.
func (p *Reporting) connectionStats() []*listenerv3.Filter {
	if p.Reports == nil || !p.Stats {
		return nil
	}
	var out []*listenerv3.Filter
	for _, s := range p.Reports.Stats {
		out = append(out, &listenerv3.Filter{Name: statsFilter, ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: s}})
	}
	return out
}

// refused are logs of connections that no filter chain takes.
func (p *Reporting) refused() []*accesslogv3.AccessLog {
	if p.Reports == nil {
		return nil
	}
	return p.Reports.Refused
}

// dropping ends connections.
func (p *Reporting) dropping() []*listenerv3.Filter {
	return append(p.connectionStats(), networkFilter("envoy.filters.network.tcp_proxy", toCluster(cluster.BlackHole)))
}

func toCluster(name string) *tcp.TcpProxy {
	return &tcp.TcpProxy{StatPrefix: name, ClusterSpecifier: &tcp.TcpProxy_Cluster{Cluster: name}}
}

// passing passes a connection's bytes to a cluster.
func (p *Reporting) passing(cluster string, protocol config.Protocol) []*listenerv3.Filter {
	return p.forwarding(toCluster(cluster), protocol)
}

// forwarding passes a connection's bytes on, and reads along where the protocol is one that
// statistics are kept of.
func (p *Reporting) forwarding(to *tcp.TcpProxy, protocol config.Protocol) []*listenerv3.Filter {
	out := p.connectionStats()
	if protocol == config.Mongo {
		out = append(out, networkFilter("envoy.filters.network.mongo_proxy", &mongo.MongoProxy{StatPrefix: to.StatPrefix}))
	}
	if p.Reports != nil {
		to.AccessLog = p.Reports.Connections
	}
	if to.IdleTimeout == nil && p.Settings.Timed {
		to.IdleTimeout = durationpb.New(p.Settings.IdleTimeout)
	}
	return append(out, networkFilter("envoy.filters.network.tcp_proxy", to))
}
