package cluster

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
)

// forever is the longest interval that Envoy takes: destinations behind a sidecar are its own
// workload and never stale.
const forever = 9223372035 * time.Second

// Inbound is what a workload's own port needs.
type Inbound struct {
	// Port is where the workload listens.
	Port     uint32
	Protocol config.Protocol
	// Redirect is the port that is dialled in place of the client's where no endpoint is given; 0:
	// the same.
	Redirect uint32
	// Endpoint is where the workload serves it: ADDRESS:PORT or unix:PATH. Empty: where the client
	// wanted to go.
	Endpoint string
	// Pool limits connections to it, Budget retries; nil without limits.
	Pool   *networking.ConnectionPoolSettings
	Budget *networking.TrafficPolicy_RetryBudget
	// RulePath is the path in Istio's API of the rule for the services.
	RulePath string
	// Services that name the port, the oldest first.
	Services []Service
	// Stat names it in statistics; empty: its own name.
	Stat string
	// Source are the addresses from which the workload is dialled.
	Source []string
	Mesh   Mesh
}

// BuildInbound makes the cluster behind a workload's port. Where no endpoint is given it dials
// where the client wanted to go, which is the workload itself.
func BuildInbound(in Inbound) *clusterv3.Cluster {
	name := InboundName(in.Port)
	c := &clusterv3.Cluster{
		Name:               name,
		AltStatName:        stat(cmp.Or(in.Stat, name)),
		CommonLbConfig:     &clusterv3.Cluster_CommonLbConfig{},
		ConnectTimeout:     in.Mesh.ConnectTimeout,
		CircuitBreakers:    unlimited(),
		UpstreamBindConfig: bindTo(in.Source),
		Metadata:           metadata(map[string]any{}, in.RulePath, "", in.inMesh()...),
	}
	in.discover(c)
	limited := Outbound{
		Protocol: in.Protocol, Policy: &networking.TrafficPolicy{ConnectionPool: in.Pool, RetryBudget: in.Budget},
		Mesh: Mesh{TCPKeepalive: in.Mesh.TCPKeepalive},
	}
	options := limited.connectionPool(c)
	options.upgrade = false // the workload speaks what its port says
	setHTTP(c, options.finish(in.Protocol))
	return c
}

// inMesh are the services that telemetry is told of.
func (in *Inbound) inMesh() []Service {
	return slices.DeleteFunc(slices.Clone(in.Services), func(s Service) bool { return s.External })
}

func (in *Inbound) discover(c *clusterv3.Cluster) {
	if in.Endpoint == "" {
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_ORIGINAL_DST}
		c.LbPolicy = clusterv3.Cluster_CLUSTER_PROVIDED
		c.CleanupInterval = durationpb.New(forever)
		redirect(c, in.Redirect)
		return
	}
	at, loopback := endpointAddress(in.Endpoint)
	if loopback {
		c.UpstreamBindConfig = nil // nothing intercepts what goes there
	}
	c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}
	c.LoadAssignment = &endpointv3.ClusterLoadAssignment{
		ClusterName: c.Name,
		Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: at}},
		}}}},
	}
}

// endpointAddress reads ADDRESS:PORT or unix:PATH.
func endpointAddress(s string) (at *core.Address, loopback bool) {
	if path, ok := hosts.Path(s); ok {
		return &core.Address{Address: &core.Address_Pipe{Pipe: &core.Pipe{Path: path}}}, false
	}
	a, _ := netip.ParseAddrPort(s)
	return &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
		Address:       a.Addr().String(),
		PortSpecifier: &core.SocketAddress_PortValue{PortValue: uint32(a.Port())},
	}}}, a.Addr().IsLoopback()
}
