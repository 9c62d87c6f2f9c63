package grpc

import (
	"net"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
)

// server is the listener of a server's own address (A36); nil where that is none. Requests go to
// the server itself.
func (c *catalog) server(v view, name, address string) proto.Message {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil
	}
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil
	}
	chain := &listenerv3.FilterChain{
		Name: "inbound-" + address,
		Filters: []*listenerv3.Filter{{Name: "inbound-hcm" + text, ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: pack(&hcm.HttpConnectionManager{
			StatPrefix:     "inbound_" + address,
			RouteSpecifier: &hcm.HttpConnectionManager_RouteConfig{RouteConfig: own()},
			HttpFilters:    append(c.authorize(v.Policies), filter(routerFilter, &routerv3.Router{})),
		})}}},
	}
	if v.mode(uint32(number)) == strictMode {
		chain.TransportSocket = serverTLS()
	}
	return &listenerv3.Listener{
		Name:         name,
		Address:      socket(host, uint32(number)),
		FilterChains: []*listenerv3.FilterChain{chain},
	}
}

// own are the routes of a server: all to itself.
func own() *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{
		Name: "inbound",
		VirtualHosts: []*routev3.VirtualHost{{Name: "inbound", Domains: []string{"*"}, Routes: []*routev3.Route{{
			Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
			Action: &routev3.Route_NonForwardingAction{NonForwardingAction: &routev3.NonForwardingAction{}},
		}}}},
	}
}

func socket(host string, port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}
