package listener

import (
	"strconv"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
)

// inboundAttempts is how often a request is sent again that the workload closed the connection
// under.
const inboundAttempts = 2

func (c *chains) manager() *listenerv3.Filter {
	m := connectionManager(c.Proxy, c.stat, c.Guards.requests(c.Proxy, c.port.Target, httpFilters(c.Proxy, true, c.port.Protocol)))
	receiving(m, hcm.HttpConnectionManager_APPEND_FORWARD, false)
	c.Proxy.Settings.certificates(m)
	m.RouteSpecifier = inline(c.routes())
	if c.port.Protocol.IsHTTP2() {
		m.Http2ProtocolOptions = &core.Http2ProtocolOptions{}
	}
	return c.Proxy.Settings.finished(m)
}

// routes send every request to the workload.
func (c *chains) routes() *routev3.RouteConfiguration {
	port := strconv.FormatUint(uint64(c.port.Number), 10)
	forever := durationpb.New(0)
	action := &routev3.RouteAction{
		ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: c.cluster},
		Timeout:          forever,
		MaxStreamDuration: &routev3.RouteAction_MaxStreamDuration{
			MaxStreamDuration:    forever,
			GrpcTimeoutHeaderMax: forever,
		},
	}
	if p := c.port.Protocol; p != config.GRPC && p != config.GRPCWeb {
		// The workload may close an idle connection just when a request is sent on it. Streams of
		// gRPC can't be sent again.
		action.RetryPolicy = &routev3.RetryPolicy{RetryOn: "reset-before-request", NumRetries: wrapperspb.UInt32(inboundAttempts)}
	}
	return &routev3.RouteConfiguration{
		Name:             c.cluster,
		ValidateClusters: wrapperspb.Bool(false),
		VirtualHosts: []*routev3.VirtualHost{{
			Name:    "inbound|http|" + port,
			Domains: []string{"*"},
			Routes: []*routev3.Route{{
				Name:      "default",
				Match:     &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
				Decorator: &routev3.Decorator{Operation: c.port.Host + ":" + port + "/*"},
				Action:    &routev3.Route_Route{Route: action},
			}},
		}},
	}
}
