package simulator

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// Config is what an Envoy is configured with. The walk changes nothing of it, so that several may
// run at once.
type Config struct {
	Listeners []*listenerv3.Listener
	// Routes are those that come by RDS. Those that stand in listeners need not be here.
	Routes   []*routev3.RouteConfiguration
	Clusters []*clusterv3.Cluster
	// Endpoints are those that come by EDS.
	Endpoints []*endpointv3.ClusterLoadAssignment
	// Filters are those that come by ECDS.
	Filters []*corev3.TypedExtensionConfig
}

func (c *Config) routes(name string) *routev3.RouteConfiguration {
	for _, r := range c.Routes {
		if r.Name == name {
			return r
		}
	}
	return nil
}

func (c *Config) cluster(name string) *clusterv3.Cluster {
	for _, v := range c.Clusters {
		if v.Name == name {
			return v
		}
	}
	return nil
}

func (c *Config) assignment(name string) *endpointv3.ClusterLoadAssignment {
	for _, a := range c.Endpoints {
		if a.ClusterName == name {
			return a
		}
	}
	return nil
}

func (c *Config) filter(name string) *corev3.TypedExtensionConfig {
	for _, f := range c.Filters {
		if f.Name == name {
			return f
		}
	}
	return nil
}
