package endpoint

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authn"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Build makes the assignment of the spec's cluster from all endpoints of its service. It is a pure
// function, so that endpoints alone can change without a wave of the graph.
func Build(spec Spec, endpoints []*Endpoint) *endpointv3.ClusterLoadAssignment {
	return build(spec, endpoints, isAddress)
}

// BuildNames is Build for clusters whose proxies look endpoints up in DNS.
func BuildNames(spec Spec, endpoints []*Endpoint) *endpointv3.ClusterLoadAssignment {
	return build(spec, endpoints, func(a string) bool { return a != "" })
}

func build(spec Spec, endpoints []*Endpoint, usable func(address string) bool) *endpointv3.ClusterLoadAssignment {
	subset := ParseSelector(spec.Subset)
	refuses := authn.ParseRefusals(spec.Refusals)
	places := map[string][]*Endpoint{}
	for _, e := range slices.SortedFunc(slices.Values(endpoints), Order) {
		if refuses(e.Labels, e.Port) {
			e = e.plain()
		}
		e = spec.Horizon.located(e)
		if (e.Address == "" || usable(e.Address)) && spec.Horizon.sees(e) && spec.selects(e, subset) && spec.serves(e) {
			places[e.Locality] = append(places[e.Locality], e)
		}
	}
	out := &endpointv3.ClusterLoadAssignment{ClusterName: spec.Cluster}
	of := map[*endpointv3.LbEndpoint]*Endpoint{}
	for _, place := range slices.Sorted(maps.Keys(places)) {
		l := locality(spec, place, places[place])
		for i, e := range places[place] {
			of[l.LbEndpoints[i]] = e
		}
		if spec.Horizon.splits() {
			spec.Horizon.split(&spec, l, of)
		}
		out.Endpoints = append(out.Endpoints, l)
	}
	if spec.Mutual {
		onlyMutual(out)
	}
	spec.Balance.apply(out, of)
	return out
}

func isAddress(a string) bool {
	_, err := netip.ParseAddr(a)
	return err == nil || isSocket(a)
}

// serves reports whether an endpoint is to be sent to. One that drains gets no new work; it is
// needed only where sessions stay with it.
func (s *Spec) serves(e *Endpoint) bool {
	switch {
	case e.drains():
		return s.Sessions
	case e.Health == pb.EndpointHealthHealthy || e.Health == pb.EndpointHealthReady:
		return true
	}
	return e.Health == pb.EndpointHealthUnhealthy && (s.Unready || s.Unhealthy)
}

func locality(spec Spec, place string, endpoints []*Endpoint) *endpointv3.LocalityLbEndpoints {
	out := &endpointv3.LocalityLbEndpoints{Locality: Locality(place)}
	var sum uint32
	for _, e := range endpoints {
		w := max(e.Weight, 1)
		sum += w
		out.LbEndpoints = append(out.LbEndpoints, lbEndpoint(spec, e, w))
	}
	out.LoadBalancingWeight = wrapperspb.UInt32(sum)
	return out
}

// Locality reads region/zone/subzone; what comes behind doesn't count.
func Locality(place string) *core.Locality {
	parts := append(strings.Split(place, "/"), "", "")
	return &core.Locality{Region: parts[0], Zone: parts[1], SubZone: parts[2]}
}

func lbEndpoint(spec Spec, e *Endpoint, weight uint32) *endpointv3.LbEndpoint {
	out := &endpointv3.LbEndpoint{
		HostIdentifier:      &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: address(e), AdditionalAddresses: spec.more(e)}},
		LoadBalancingWeight: wrapperspb.UInt32(weight),
		Metadata:            metadata(spec, e),
	}
	switch {
	case e.drains():
		out.HealthStatus = core.HealthStatus_DRAINING
	case e.Health == pb.EndpointHealthReady:
		out.HealthStatus = core.HealthStatus_HEALTHY
	case e.Health == pb.EndpointHealthUnhealthy && !spec.Unready:
		out.HealthStatus = core.HealthStatus_UNHEALTHY
	}
	return out
}

// more are an endpoint's further addresses: proxies race them (RFC 8305).
func (s *Spec) more(e *Endpoint) []*endpointv3.Endpoint_AdditionalAddress {
	if !s.Dual {
		return nil
	}
	var out []*endpointv3.Endpoint_AdditionalAddress
	for _, a := range e.MoreAddresses {
		other := &Endpoint{Endpoint: pb.Endpoint{Address: a, Port: e.Port}}
		out = append(out, &endpointv3.Endpoint_AdditionalAddress{Address: address(other)})
	}
	return out
}

func address(e *Endpoint) *core.Address {
	if isSocket(e.Address) {
		path, _ := hosts.Path(e.Address)
		return &core.Address{Address: &core.Address_Pipe{Pipe: &core.Pipe{Path: path}}}
	}
	return &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
		Address:       e.Address,
		PortSpecifier: &core.SocketAddress_PortValue{PortValue: e.Port},
	}}}
}

// isSocket reports whether an address is that of a Unix socket.
func isSocket(address string) bool {
	_, ok := hosts.Path(address)
	return ok || strings.HasPrefix(address, "/") || strings.HasPrefix(address, "@")
}

// metadata says how to speak to an endpoint (it selects the cluster's transport socket), and who it
// is.
func metadata(spec Spec, e *Endpoint) *core.Metadata {
	service, revision := e.canonical()
	namespace := e.namespace()
	if e.Workload == "" {
		namespace = "" // nobody knows whose it is
	}
	if revision == "latest" {
		revision = "" // as good as none
	}
	workload := strings.Join([]string{e.Workload, namespace, service, revision, e.Cluster}, ";")
	out := map[string]*structpb.Struct{"istio": encode.Struct(map[string]any{"workload": workload})}
	if spec.mutual(e) {
		out[socketMatch] = encode.Struct(map[string]any{"tlsMode": "istio"})
	}
	return &core.Metadata{FilterMetadata: out}
}
