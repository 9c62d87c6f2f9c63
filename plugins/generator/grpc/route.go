package grpc

import (
	"slices"
	"strconv"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// routes are those of a service's port (A28): what a virtual service says, else all requests to all
// endpoints.
func (c *catalog) routes(v view, name string, s *pb.Service, p *pb.Port) proto.Message {
	h := &routev3.VirtualHost{Name: s.Host + ":" + strconv.FormatUint(uint64(p.Number), 10), Domains: []string{"*"}}
	rule := c.routed(v, s.Host)
	if rule == nil {
		h.Routes = []*routev3.Route{{Match: everything(), Action: single(subsetOf(s, p, ""))}}
	} else {
		for _, r := range rule.spec.Http {
			h.Routes = append(h.Routes, c.expand(v, rule.namespace, s, p, r)...)
		}
	}
	return &routev3.RouteConfiguration{Name: name, VirtualHosts: []*routev3.VirtualHost{h}}
}

func everything() *routev3.RouteMatch {
	return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: ""}}
}

// routed is the virtual service that a client sees for a host: the closest, the oldest of these.
// Those of gateways alone are not for it, nor those without routes for HTTP.
func (c *catalog) routed(v view, host string) *resource[*networking.VirtualService] {
	var found *resource[*networking.VirtualService]
	var best string
	for i := range c.routing {
		r := &c.routing[i]
		gateways := r.spec.Gateways
		if len(r.spec.Http) == 0 || len(gateways) > 0 && !slices.Contains(gateways, meshGateway) ||
			!v.sees(r.spec.ExportTo, c.mesh.DefaultVirtualServiceExportTo, r.namespace) {
			continue
		}
		for _, pattern := range r.spec.Hosts {
			pattern = istio.Resolve(pattern, r.namespace, c.domain)
			if istio.Covers(pattern, host) && (found == nil || istio.MoreSpecific(pattern, best) < 0) {
				found, best = r, pattern
			}
		}
	}
	return found
}

// meshGateway is the name that stands for all clients in the mesh.
const meshGateway = "mesh"

// expand makes routes of each match. What gRPC can't do with a call that goes on isn't made:
// rewrites, headers, mirrors.
func (c *catalog) expand(v view, namespace string, s *pb.Service, p *pb.Port, r *networking.HTTPRoute) []*routev3.Route {
	asked := r.Match
	if len(asked) == 0 {
		asked = []*networking.HTTPMatchRequest{{}}
	}
	var out []*routev3.Route
	for _, m := range asked {
		if !applies(m, v, p) {
			continue
		}
		for _, one := range matches(m) {
			if made := c.made(v, namespace, s, p, r); made != nil {
				made.Match = one
				out = append(out, made)
			}
		}
	}
	return out
}

// made is what a route does with the calls that it matches; nil for nothing.
func (c *catalog) made(v view, namespace string, s *pb.Service, p *pb.Port, r *networking.HTTPRoute) *routev3.Route {
	made := &routev3.Route{Name: r.Name}
	switch {
	case r.Redirect != nil: // a client of gRPC follows none, and that of some languages refuses all routes when there is one among them
		made.Action = single(subsetOf(s, p, ""))
		made.TypedPerFilterConfig = map[string]*anypb.Any{faultFilter: pack(unavailable())}
	case r.DirectResponse != nil:
		made.Action = single(subsetOf(s, p, ""))
		made.TypedPerFilterConfig = map[string]*anypb.Any{faultFilter: pack(refusal(r.DirectResponse.Status))}
	case len(r.Route) > 0:
		made.Action = c.action(v, namespace, s, p, r)
		if f := fault(r.Fault); f != nil {
			made.TypedPerFilterConfig = map[string]*anypb.Any{faultFilter: pack(f)}
		}
	default:
		return nil
	}
	return made
}

// method is that of every call of gRPC.
const method = "POST"

// applies reports whether a match is for this port and for clients of the view, and asks for
// nothing that a client of gRPC can't tell: which scheme and authority a call has isn't among its
// headers.
func applies(m *networking.HTTPMatchRequest, v view, p *pb.Port) bool {
	switch {
	case m.Port != 0 && m.Port != p.Number:
		return false
	case m.SourceNamespace != "" && m.SourceNamespace != v.Namespace:
		return false
	case len(m.Gateways) > 0 && !slices.Contains(m.Gateways, meshGateway):
		return false
	case len(m.QueryParams) > 0, m.Scheme != nil, m.Authority != nil:
		return false
	case !says(m.Method, method):
		return false
	}
	for name, value := range m.SourceLabels {
		if has, ok := v.Labels[name]; !ok || has != value {
			return false
		}
	}
	return true
}

func single(to subset) *routev3.Route_Route {
	return &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: to.String()}}}
}

// action leads to one cluster, or to several by weight.
func (c *catalog) action(v view, namespace string, s *pb.Service, p *pb.Port, r *networking.HTTPRoute) *routev3.Route_Route {
	out := &routev3.RouteAction{}
	if len(r.Route) == 1 {
		out.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: c.destination(v, namespace, s, p, r.Route[0].Destination)}
	} else {
		weights := &routev3.WeightedCluster{}
		for _, d := range r.Route {
			if d.Weight > 0 {
				weights.Clusters = append(weights.Clusters, &routev3.WeightedCluster_ClusterWeight{
					Name: c.destination(v, namespace, s, p, d.Destination), Weight: wrapperspb.UInt32(uint32(d.Weight)),
				})
			}
		}
		out.ClusterSpecifier = &routev3.RouteAction_WeightedClusters{WeightedClusters: weights}
	}
	if r.Timeout != nil { // A31
		out.MaxStreamDuration = &routev3.RouteAction_MaxStreamDuration{MaxStreamDuration: r.Timeout}
	}
	out.RetryPolicy = retries(r.Retries)
	return &routev3.Route_Route{Route: out}
}

// destination names a cluster. Without a port it is the service's only one, else the one that was
// asked for.
func (c *catalog) destination(v view, namespace string, s *pb.Service, p *pb.Port, d *networking.Destination) string {
	to := subset{port: p.Number, subset: d.GetSubset(), host: istio.Resolve(d.GetHost(), namespace, c.domain)}
	if n := d.GetPort().GetNumber(); n != 0 {
		to.port = n
	} else if other := c.service(v, to.host); other != nil && to.host != s.Host && len(other.Ports) == 1 {
		to.port = other.Ports[0].Number
	}
	return to.String()
}

// retryOn are the conditions that gRPC knows (A44).
var retryOn = []string{"cancelled", "deadline-exceeded", "internal", "resource-exhausted", "unavailable"}

// retries is nil where nothing is said: gRPC tries again what never left the client by itself.
func retries(r *networking.HTTPRetry) *routev3.RetryPolicy {
	if r.GetAttempts() <= 0 {
		return nil
	}
	var on []string
	for word := range strings.SplitSeq(r.RetryOn, ",") {
		if word = strings.TrimSpace(word); slices.Contains(retryOn, word) {
			on = append(on, word)
		}
	}
	if len(on) == 0 {
		on = []string{"unavailable"}
	}
	return &routev3.RetryPolicy{RetryOn: strings.Join(on, ","), NumRetries: wrapperspb.UInt32(uint32(r.Attempts))}
}
