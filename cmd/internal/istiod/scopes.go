package istiod

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/proto"
	api "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/cmd/internal/rules"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// noted is what istiod notes of a proxy or a cluster while it pushes.
type noted struct {
	Proxy   string `json:"proxy,omitempty"`
	Message string `json:"message,omitempty"`
}

// pushStatus shows, under the names of istiod's metrics, what can be told from services and
// endpoints: ports without an endpoint that may be served, and endpoints that are not ready. What
// generators find while they work they say of objects (/debug/configs).
func (s *source) pushStatus(w http.ResponseWriter, _ *http.Request) {
	type port struct {
		of
		name string
	}
	served, lazy, all := map[port]bool{}, map[string]noted{}, map[string]map[string]noted{}
	tolerant := map[of]bool{}
	s.services(func(_ *pb.Row, v *pb.Service) { tolerant[of{v.Namespace, v.Host}] = v.PublishNotReady })
	for _, e := range s.endpoints() {
		at := of{e.Namespace, e.Host}
		if e.Health == pb.EndpointHealthHealthy || e.Health == pb.EndpointHealthReady || tolerant[at] {
			served[port{at, e.PortName}] = true
			continue
		}
		id := cmp.Or(e.Workload, e.Address) + "." + cmp.Or(e.WorkloadNamespace, e.Namespace)
		lazy[id] = noted{Proxy: id}
	}
	empty := map[string]noted{}
	s.services(func(_ *pb.Row, v *pb.Service) {
		if v.Resolution == pb.ServiceResolutionNone || v.Resolution == pb.ServiceResolutionDynamicDns {
			return // proxies need no endpoints of it
		}
		for _, p := range v.Ports {
			if !served[port{of{v.Namespace, v.Host}, p.Name}] {
				empty["outbound|"+strconv.FormatUint(uint64(p.Number), 10)+"||"+v.Host] = noted{}
			}
		}
	})
	if len(empty) > 0 {
		all["pilot_eds_no_instances"] = empty
	}
	if len(lazy) > 0 {
		all["pilot_endpoint_not_ready"] = lazy
	}
	write(w, all)
}

// scope is what a proxy sees of the mesh.
type scope struct {
	DestinationRules map[string][]ruleName `json:"destinationRules"`
	Egress           [][]service           `json:"egressListenerServices"`
	Name             string                `json:"name"`
	Namespace        string                `json:"namespace"`
	Policy           *message              `json:"outboundTrafficPolicy"`
	Services         []service             `json:"services"`
	ByHost           map[string]service    `json:"servicesByHostname"`
	Sidecar          *message              `json:"sidecar"`
	Version          string                `json:"version"`
}

// ruleName names a DestinationRule.
type ruleName struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// sidecars is the table of Sidecars.
const sidecars = "networking.istio.io/Sidecar"

// sidecarz shows what a proxy sees of the mesh, as its clusters say: the services that they lead
// to, the DestinationRules that they were made by, and the Sidecar that its resources were made
// from.
func (s *source) sidecarz(w http.ResponseWriter, r *http.Request) {
	node, types, ok := s.dumped(w, r)
	if !ok {
		return
	}
	v := scope{DestinationRules: map[string][]ruleName{}, Services: []service{}, ByHost: map[string]service{}, Name: "default-sidecar", Namespace: s.root}
	ports := map[string]map[string]bool{}
	for _, t := range types {
		for _, b := range t.Bodies {
			if t.Type == clusterType {
				v.add(ports, b.Value())
			}
		}
	}
	s.services(func(row *pb.Row, one *pb.Service) {
		seen := newService(row, one)
		seen.Ports = slices.DeleteFunc(seen.Ports, func(p port) bool { return !ports[one.Host][strconv.FormatUint(uint64(p.Number), 10)] })
		if _, twice := v.ByHost[one.Host]; len(seen.Ports) > 0 && !twice {
			v.Services, v.ByHost[one.Host] = append(v.Services, seen), seen
		}
	})
	v.Egress = [][]service{v.Services}
	m := &api.MeshConfig{}
	s.settings(state.Mesh, m)
	policy := networking.OutboundTrafficPolicy{Mode: networking.OutboundTrafficPolicy_Mode(m.GetOutboundTrafficPolicy().GetMode())}
	if p, ok := s.proxyNamed(node); ok {
		v.Namespace = p.id.Namespace
	}
	if row := s.sidecarOf(r.Context(), node); row != nil {
		spec := &networking.Sidecar{}
		if proto.Unmarshal(row.Payload, spec) == nil {
			v.Namespace, v.Name, _ = strings.Cut(row.Key, "/")
			v.Sidecar = &message{spec}
			if spec.OutboundTrafficPolicy != nil {
				policy.Mode = spec.OutboundTrafficPolicy.Mode
			}
		}
	}
	v.Policy = &message{&policy}
	write(w, v)
}

// add notes where a cluster leads to, and what it was made by.
func (v *scope) add(ports map[string]map[string]bool, value []byte) {
	c := &clusterv3.Cluster{}
	if proto.Unmarshal(value, c) != nil {
		return
	}
	n, ok := rules.SplitCluster(c.Name)
	if !ok {
		return
	}
	if ports[n.Host] == nil {
		ports[n.Host] = map[string]bool{}
	}
	ports[n.Host][n.Port] = true
	namespace, name, ok := strings.Cut(rules.Object(c.Metadata, "destination-rule"), "/")
	if by := (ruleName{namespace, name}); ok && !slices.Contains(v.DestinationRules[n.Host], by) {
		v.DestinationRules[n.Host] = append(v.DestinationRules[n.Host], by)
	}
}

// proxyNamed is a proxy with the id of a node.
func (s *source) proxyNamed(node string) (proxy, bool) {
	all := s.proxies()
	i := slices.IndexFunc(all, func(p proxy) bool { return p.Node == node })
	if i < 0 {
		return proxy{}, false
	}
	return all[i], true
}

// mostAsked is of how many of a proxy's resources it is asked what they were made from.
const mostAsked = 8

// sidecarOf is the row of the Sidecar that a proxy's resources were made from; nil: of none, or
// their generator does not say.
func (s *source) sidecarOf(ctx context.Context, node string) *pb.Row {
	p, ok := s.Proxy(node)
	if !ok {
		return nil
	}
	asked := 0
	for _, t := range p.Types {
		if t.Type != listenerType && t.Type != clusterType {
			continue
		}
		for _, n := range t.Names {
			if asked++; asked > mostAsked {
				return nil
			}
			e, err := s.Explain(ctx, node, t.Type, n.Name)
			if err != nil {
				continue
			}
			for _, origin := range e.Rows {
				if origin.Table != sidecars {
					continue
				}
				rows := s.sorted(sidecars)
				if i := slices.IndexFunc(rows, func(r *pb.Row) bool { return r.Key == origin.Key }); i >= 0 {
					return rows[i]
				}
			}
		}
	}
	return nil
}
