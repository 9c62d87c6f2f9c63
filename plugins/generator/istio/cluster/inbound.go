package cluster

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
)

// forever is the longest interval that Envoy takes: destinations behind a sidecar are its own workload and never stale.
const forever = 9223372035 * time.Second

// Inbound is what a workload's own port needs.
type Inbound struct {
	// Port is where the workload listens.
	Port     uint32
	Protocol config.Protocol
	// Services that name the port, the oldest first.
	Services []Service
	// Source are the addresses from which the workload is dialled.
	Source         []string
	ConnectTimeout *durationpb.Duration
}

// BuildInbound makes the cluster behind a workload's port: it dials where the client wanted to go, which is the workload itself.
func BuildInbound(in Inbound) *clusterv3.Cluster {
	name := InboundName(in.Port)
	c := &clusterv3.Cluster{
		Name:                 name,
		AltStatName:          stat(name),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_ORIGINAL_DST},
		LbPolicy:             clusterv3.Cluster_CLUSTER_PROVIDED,
		CommonLbConfig:       &clusterv3.Cluster_CommonLbConfig{},
		ConnectTimeout:       in.ConnectTimeout,
		CleanupInterval:      durationpb.New(forever),
		CircuitBreakers:      unlimited(),
		UpstreamBindConfig:   bindTo(in.Source),
		Metadata:             metadata("", "", in.Services...),
	}
	setHTTP(c, upstreamHTTP(in.Protocol))
	return c
}
