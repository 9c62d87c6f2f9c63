package simulator

import (
	"net"
	"strconv"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	aggregatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/aggregate/v3"
)

// Why a cluster takes nothing.
const (
	noCluster   = "there is no such cluster"
	noEndpoints = "it has no endpoints"
	noHealthy   = "none of its endpoints is healthy"
	noSubset    = "no subset of its endpoints has the metadata that the route wants"
)

// share is a cluster with its endpoints.
func (w *walk) share(name string, percent float64, want *corev3.Metadata) Share {
	s := Share{Cluster: name, Percent: percent}
	c := w.cluster(name)
	if c == nil {
		s.Fault = noCluster
		return s
	}
	s.Endpoints, s.Fault = w.endpoints(c, want)
	return s
}

// endpoints of a cluster, as its kind finds them.
//
// https://www.envoyproxy.io/docs/envoy/latest/intro/arch_overview/upstream/service_discovery
func (w *walk) endpoints(c *clusterv3.Cluster, want *corev3.Metadata) (list []Endpoint, fault string) {
	var aggregate aggregatev3.ClusterConfig
	switch kind := c.GetClusterDiscoveryType().(type) {
	case *clusterv3.Cluster_ClusterType:
		if typed(kind.ClusterType.TypedConfig, &aggregate) {
			return w.first(aggregate.Clusters, want)
		}
		if strings.HasSuffix(kind.ClusterType.Name, "dynamic_forward_proxy") && w.stream != nil {
			return []Endpoint{w.endpoint(c, w.stream.Host, nil)}, ""
		}
	case *clusterv3.Cluster_Type:
		if kind.Type == clusterv3.Cluster_ORIGINAL_DST {
			return []Endpoint{w.endpoint(c, w.original(c), nil)}, ""
		}
	}
	a := c.LoadAssignment
	if c.GetType() == clusterv3.Cluster_EDS {
		name := c.GetEdsClusterConfig().GetServiceName()
		if name == "" {
			name = c.Name
		}
		a = w.assignment(name)
	}
	return w.balance(c, a, want)
}

// first of an aggregate's clusters that has endpoints.
func (w *walk) first(names []string, want *corev3.Metadata) (list []Endpoint, fault string) {
	fault = noEndpoints
	for _, name := range names {
		s := w.share(name, 100, want)
		if s.Fault == "" {
			return s.Endpoints, ""
		}
		fault = name + ": " + s.Fault
	}
	return nil, fault
}

// original is where the client wanted to go, or where a header says.
//
// https://www.envoyproxy.io/docs/envoy/latest/intro/arch_overview/upstream/service_discovery#original-destination
func (w *walk) original(c *clusterv3.Cluster) string {
	config := c.GetOriginalDstLbConfig()
	at := w.local.String()
	if config.GetUseHttpHeader() && w.stream != nil {
		name := config.HttpHeaderName
		if name == "" {
			name = "x-envoy-original-dst-host"
		}
		if value, ok := w.stream.header(name); ok {
			at = value
		}
	}
	if host, _, err := net.SplitHostPort(at); err == nil && config.GetUpstreamPortOverride() != nil {
		at = net.JoinHostPort(host, strconv.Itoa(int(config.UpstreamPortOverride.Value)))
	}
	return at
}

// endpoint is one that gets everything, for now.
func (w *walk) endpoint(c *clusterv3.Cluster, address string, e *endpointv3.LbEndpoint) Endpoint {
	return Endpoint{Address: address, Percent: 100, TLS: w.upstreamTLS(c, e)}
}

func addressOf(e *endpointv3.LbEndpoint) string {
	a := e.GetEndpoint().GetAddress()
	switch {
	case a.GetSocketAddress() != nil:
		return net.JoinHostPort(a.GetSocketAddress().Address, strconv.Itoa(int(a.GetSocketAddress().GetPortValue())))
	case a.GetPipe() != nil:
		return a.GetPipe().Path
	case a.GetEnvoyInternalAddress() != nil:
		return "listener " + a.GetEnvoyInternalAddress().GetServerListenerName()
	}
	return e.GetEndpointName()
}
