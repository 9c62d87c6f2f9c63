package route

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// maxDirectResponse is the largest body of a direct response, in bytes.
const maxDirectResponse = 1 << 20

// HTTPProxy is the name of the route configuration of the listener at which the workload finds a
// proxy for HTTP.
const HTTPProxy = "http_proxy"

// HostName names a virtual host: HOST:PORT, with IPv6 in brackets.
func HostName(host string, port uint32) string {
	if strings.Contains(host, ":") && host[0] != '[' {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.FormatUint(uint64(port), 10)
}

// Default is the route to a service that no virtual service speaks of.
func Default(to cluster.Name, rule *networking.DestinationRule, retries *networking.HTTPRetry) *routev3.Route {
	action := NewAction(nil)
	action.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: to.String()}
	action.RetryPolicy = retryPolicy(nil, retries, false)
	action.HashPolicy = hashPolicy(hashAt(rule.GetTrafficPolicy(), to.Port))
	out := &routev3.Route{
		Name:   "default",
		Match:  match(nil, false),
		Action: &routev3.Route_Route{Route: action},
	}
	out.Decorator = &routev3.Decorator{Operation: operation(out, to.Host, to.Port)}
	return out
}

// VirtualHost holds the routes of some domains.
func VirtualHost(name string, domains []string, routes []*routev3.Route) *routev3.VirtualHost {
	return &routev3.VirtualHost{Name: name, Domains: domains, Routes: routes, IncludeRequestAttemptCount: true}
}

// AllowAny sends requests for hosts that nobody knows to a cluster: the one that goes where they
// were going, or an egress proxy. forwarded: it is told the host that was asked for.
func AllowAny(to string, forwarded bool) *routev3.VirtualHost {
	action := NewAction(nil)
	action.AppendXForwardedHost = forwarded
	action.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: to}
	name := "allow_any"
	if to == cluster.AllowAnyDynamic {
		name = "allow_any_dynamic_dns"
	}
	r := &routev3.Route{Name: name, Match: match(nil, false), Action: &routev3.Route_Route{Route: action}}
	return VirtualHost(name, []string{"*"}, []*routev3.Route{r})
}

// BlockAll refuses requests for hosts that nobody knows.
func BlockAll() *routev3.VirtualHost {
	r := &routev3.Route{
		Name:   "block_all",
		Match:  match(nil, false),
		Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 502}},
	}
	return VirtualHost("block_all", []string{"*"}, []*routev3.Route{r})
}

// Unknown refuses requests at a gateway's port for which there is no virtual service at all.
func Unknown(port uint32) *routev3.VirtualHost {
	return &routev3.VirtualHost{Name: HostName("blackhole", port), Domains: []string{"*"}}
}

// EncodedHost is a virtual host as a field of a route configuration.
func EncodedHost(h *routev3.VirtualHost) []byte {
	b := encode.Bytes(h)
	out := make([]byte, 0, 1+protowire.SizeBytes(len(b)))
	return protowire.AppendBytes(protowire.AppendTag(out, VirtualHostsField, protowire.BytesType), b)
}

// CompareNames orders virtual hosts that EncodedHost encoded by their names, as bytes.
func CompareNames(a, b []byte) int { return bytes.Compare(nameOf(a), nameOf(b)) }

// nameOf is the name of a virtual host, its first field; of one that could never be made it is
// empty.
func nameOf(field []byte) []byte {
	host, _ := protowire.ConsumeBytes(field[min(1, len(field)):])
	name, _ := protowire.ConsumeBytes(host[min(1, len(host)):])
	return name
}

// Configuration is a route configuration in fields, of encoded virtual hosts: these are as they
// were given, not copied. One that could never be made is empty, and left out.
func Configuration(name string, hosts [][]byte) [][]byte {
	return append([][]byte{encode.Bytes(Inline(name))}, slices.DeleteFunc(hosts, func(h []byte) bool { return len(h) == 0 })...)
}

// Inline is a route configuration whose virtual hosts stand in it.
func Inline(name string, hosts ...*routev3.VirtualHost) *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{
		Name:                           name,
		VirtualHosts:                   hosts,
		ValidateClusters:               wrapperspb.Bool(false),
		IgnorePortInHostMatching:       true,
		MaxDirectResponseBodySizeBytes: wrapperspb.UInt32(maxDirectResponse),
	}
}

// VirtualHostsField is the number of RouteConfiguration.virtual_hosts.
const VirtualHostsField = 2

// Empty is the route configuration of a name that means nothing to this proxy.
func Empty(name string) [][]byte {
	return [][]byte{encode.Bytes(&routev3.RouteConfiguration{Name: name, ValidateClusters: wrapperspb.Bool(false)})}
}
