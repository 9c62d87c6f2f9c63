package listener

import (
	"math"
	"slices"

	xds "github.com/cncf/xds/go/xds/core/v3"
	matcher "github.com/cncf/xds/go/xds/type/matcher/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	udp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/udp/udp_proxy/v3"
	network "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/common_inputs/network/v3"
	hashing "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/input_matchers/consistent_hashing/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// largestDatagram is the longest that is passed on: any that there can be. Envoy's own bound is
// that of an Ethernet frame; what is longer it drops.
const largestDatagram = math.MaxUint16

// DatagramName is the name of the listener for datagrams at a place. HTTP/3 has the same: one of
// the two can be there.
func (b Bind) DatagramName() string { return b.QUICName() }

// BuildDatagrams makes the listener of a gateway for datagrams: those of a client's port go where
// the first one went, until none came for a while.
func BuildDatagrams(in Gateway, to Forward) *listenerv3.Listener {
	address := socketAddress(in.Address, in.Port)
	address.GetSocketAddress().Protocol = core.SocketAddress_UDP
	out := &listenerv3.Listener{
		Name:                in.DatagramName(),
		Address:             address,
		AdditionalAddresses: in.elsewhere(),
		TrafficDirection:    core.TrafficDirection_OUTBOUND,
		UdpListenerConfig:   &listenerv3.UdpListenerConfig{DownstreamSocketConfig: datagramSocket()},
		ListenerFilters: []*listenerv3.ListenerFilter{{
			Name:       "envoy.filters.udp_listener.udp_proxy",
			ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: encode.Any(to.datagrams(in.Proxy))},
		}},
	}
	for _, a := range out.AdditionalAddresses {
		a.GetAddress().GetSocketAddress().Protocol = core.SocketAddress_UDP
	}
	return out
}

func datagramSocket() *core.UdpSocketConfig {
	return &core.UdpSocketConfig{MaxRxDatagramSize: wrapperspb.UInt64(largestDatagram)}
}

// datagrams pass them on.
func (f *Forward) datagrams(p Reporting) *udp.UdpProxyConfig {
	out := &udp.UdpProxyConfig{
		StatPrefix:           f.Stat,
		RouteSpecifier:       &udp.UdpProxyConfig_Matcher{Matcher: f.byWeight()},
		IdleTimeout:          f.Rule.GetTrafficPolicy().GetConnectionPool().GetTcp().GetIdleTimeout(),
		UpstreamSocketConfig: datagramSocket(),
	}
	if f.bySource() {
		out.HashPolicies = []*udp.UdpProxyConfig_HashPolicy{{PolicySpecifier: &udp.UdpProxyConfig_HashPolicy_SourceIp{SourceIp: true}}}
	}
	if p.Reports != nil {
		out.AccessLog = p.Reports.Connections
	}
	return out
}

// byWeight chooses among the clusters: by the client's port, of which each cluster has a part of
// the hashes that is as great as its weight. That is all that Envoy has for it: what the UDP proxy
// matches leads to one cluster.
func (f *Forward) byWeight() *matcher.Matcher {
	shares := slices.DeleteFunc(slices.Clone(f.Shares), func(s Share) bool { return len(f.Shares) > 1 && s.Weight == 0 })
	if len(shares) == 0 {
		return &matcher.Matcher{}
	}
	last := len(shares) - 1
	out := &matcher.Matcher{OnNoMatch: toDatagrams(shares[last].Cluster)}
	var list []*matcher.Matcher_MatcherList_FieldMatcher
	left := uint32(0)
	for _, s := range shares {
		left += s.Weight
	}
	for modulo, i := left, 0; i < last; i++ {
		left -= shares[i].Weight
		list = append(list, &matcher.Matcher_MatcherList_FieldMatcher{
			Predicate: &matcher.Matcher_MatcherList_Predicate{MatchType: &matcher.Matcher_MatcherList_Predicate_SinglePredicate_{
				SinglePredicate: &matcher.Matcher_MatcherList_Predicate_SinglePredicate{
					Input: typed("envoy.matching.inputs.source_port", &network.SourcePortInput{}),
					Matcher: &matcher.Matcher_MatcherList_Predicate_SinglePredicate_CustomMatch{
						CustomMatch: typed("envoy.matching.matchers.consistent_hashing", &hashing.ConsistentHashing{Threshold: left, Modulo: modulo}),
					},
				},
			}},
			OnMatch: toDatagrams(shares[i].Cluster),
		})
	}
	if len(list) > 0 {
		out.MatcherType = &matcher.Matcher_MatcherList_{MatcherList: &matcher.Matcher_MatcherList{Matchers: list}}
	}
	return out
}

// toDatagrams leads datagrams to a cluster.
func toDatagrams(cluster string) *matcher.Matcher_OnMatch {
	return &matcher.Matcher_OnMatch{OnMatch: &matcher.Matcher_OnMatch_Action{Action: typed("route", &udp.Route{Cluster: cluster})}}
}

func typed(name string, m proto.Message) *xds.TypedExtensionConfig {
	return &xds.TypedExtensionConfig{Name: name, TypedConfig: encode.Any(m)}
}
