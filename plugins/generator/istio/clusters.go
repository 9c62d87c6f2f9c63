package istio

import (
	"bytes"
	"net"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authn"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// clusters: one function makes each cluster, keyed by the least it depends on; the collection says which of them a set has.
type clusters struct {
	cluster *incr.Func[clusterKey, []byte]
	// sets that views have; inSet lists their clusters.
	clusterSets *incr.Input[clusterSet, struct{}]
	inSet       *incr.Index[clusterSet, setCluster, []byte]
	static      *incr.Func[staticKey, []byte]
	behind      *incr.Func[inboundClusterKey, []byte]
	endpointsOf *incr.Func[string, []*endpoint.Endpoint]
	atAddress   *incr.Index[string, string, row[*endpoint.Endpoint]]
}

// clusterSet is the outbound clusters of a scope, as proxies of a flavour get them.
type clusterSet struct {
	Scope  Scope
	Client clientKey
}

// clientKey is cluster.Client, comparable and ordered.
type clientKey struct {
	MetadataExchange, NoAgent, Router bool
	// ByName: the clusters to which a gateway passes TLS on by its server name.
	ByName   bool
	Families config.Families
	// Locality is where the proxies are, for clusters that hold their endpoints; empty where nobody asks.
	Locality string
	// SameCase: names of headers keep their case in HTTP/1.
	SameCase bool
}

// byName are the clusters for which TLS names servers.
func (s clusterSet) byName() clusterSet {
	s.Client.ByName = true
	return s
}

// anywhere is the key for what doesn't ask where proxies are.
func (k clientKey) anywhere() clientKey {
	k.Locality = ""
	return k
}

func (k clientKey) client() cluster.Client {
	return cluster.Client{
		Filters: cluster.Filters{MetadataExchange: k.MetadataExchange},
		NoAgent: k.NoAgent,
		Router:  k.Router,

		Families: k.Families,
	}
}

type setCluster struct {
	Set  clusterSet
	Name string
}

// clusterKey names a cluster: a service's port, a subset of a rule (by key), and what it depends on of its clients.
type clusterKey struct {
	Service string
	Port    uint32
	Subset  string
	Rule    string
	Client  clientKey
}

func (g *graph) addClusters() {
	g.cluster = incr.NewFunc(g.Graph, "outbound cluster", bytes.Equal, g.buildCluster)
	g.clusterSets = incr.NewInput[clusterSet](g.Graph, "cluster sets", incr.Same[struct{}])
	pairs := incr.Join(g.clusterSets, g.visible, "hosts in cluster sets",
		func(s clusterSet, _ struct{}) []Scope { return []Scope{s.Scope} },
		func(h host, _ *config.Service) []Scope { return []Scope{h.Scope} },
		samePointer[config.Service],
		func(_ *incr.Ctx, _ incr.Pair[clusterSet, host], _ struct{}, s *config.Service) (*config.Service, error) {
			return s, nil
		})
	all := incr.FlatMap(pairs, "clusters of host", bytes.Equal,
		func(c *incr.Ctx, k incr.Pair[clusterSet, host], s *config.Service) ([]incr.Item[setCluster, []byte], error) {
			return g.clustersOf(c, k.Left, s), nil
		})
	g.inSet = incr.NewIndex(all, "clusters of set", func(k setCluster, _ []byte) []clusterSet { return []clusterSet{k.Set} })
	g.static = incr.NewFunc(g.Graph, "static cluster", bytes.Equal, g.buildStatic)
	g.behind = incr.NewFunc(g.Graph, "inbound cluster", bytes.Equal, g.buildInboundCluster)
}

// clustersOf are the clusters of a service: one for each port, and one for each port and subset of its rule.
func (g *graph) clustersOf(c *incr.Ctx, set clusterSet, s *config.Service) []incr.Item[setCluster, []byte] {
	if set.Client.ByName && s.External {
		return nil
	}
	rule := g.ruleFor(c, set.Scope, s)
	subsets := []string{""}
	k := clusterKey{Service: s.Key, Client: set.Client}
	if !cluster.Resolves(s) {
		k.Client = k.Client.anywhere()
	}
	if rule != nil {
		k.Rule = rule.Key
		for _, sub := range rule.Spec.Subsets {
			subsets = append(subsets, sub.Name)
		}
	}
	var out []incr.Item[setCluster, []byte]
	for _, p := range s.Ports {
		if config.ParseProtocol(p.Protocol) == config.UDP {
			continue
		}
		for _, k.Subset = range subsets {
			k.Port = p.Number
			if b, ok := g.cluster.Get(c, k); ok {
				name := cluster.Name{Port: p.Number, Subset: k.Subset, Host: s.Host, ByName: set.Client.ByName}.String()
				out = append(out, incr.Item[setCluster, []byte]{Key: setCluster{set, name}, Value: b})
			}
		}
	}
	return out
}

func (g *graph) buildCluster(c *incr.Ctx, k clusterKey) ([]byte, error) {
	s, ok := g.services.Get(c, k.Service)
	if !ok || s.value.Port(k.Port) == nil {
		return nil, incr.Absent
	}
	in := cluster.Outbound{
		Name:       cluster.Name{Port: k.Port, Subset: k.Subset, Host: s.value.Host, ByName: k.Client.ByName},
		Service:    s.value,
		Protocol:   config.ParseProtocol(s.value.Port(k.Port).Protocol),
		Mesh:       g.clusterSettings.Of(c, only),
		Client:     k.Client.client(),
		Identities: g.namesOf(c, s.value),
		Refuses:    g.peerMode.Of(c, s.value.Namespace) == authn.Disable,
	}
	if rule, ok := g.merged.Get(c, k.Rule); ok {
		in.Policy = cluster.PolicyFor(rule.Spec, k.Subset, k.Port)
		in.RulePath = rule.Path("destination-rule")
		in.Selected = rule.Spec.GetWorkloadSelector() != nil
	}
	if cluster.PassesThrough(s.value, in.Policy) {
		in.Refuses = in.Refuses || !g.allMutual(c, s.value.Key, k.Port)
	}
	if cluster.Resolves(s.value) {
		in.Endpoints = g.namedEndpoints(c, s.value, k, in.Policy)
		if in.Endpoints == nil {
			return nil, incr.Absent
		}
	}
	out := cluster.BuildOutbound(in)
	if k.Client.SameCase && !k.Client.ByName && out != nil {
		cluster.SameCase(out, in.Protocol)
	}
	return encode.Bytes(out), nil
}

// namesOf are the identities that a service's workloads may have.
func (g *graph) namesOf(c *incr.Ctx, s *config.Service) []string {
	return authn.Aliases(slices.Concat(s.SubjectAltNames, g.identities.Of(c, s.Key)), g.domains.Of(c, only)[1:])
}

// allMutual reports whether every endpoint of a service's port speaks the mesh's mutual TLS, and there is one.
func (g *graph) allMutual(c *incr.Ctx, service string, port uint32) bool {
	some := false
	for _, e := range g.endpointsOf.Of(c, service) {
		if e.ServicePort == port {
			some = true
			if e.TlsMode != endpoint.Mutual {
				return false
			}
		}
	}
	return some
}

// namedEndpoints are the endpoints that stand in the cluster itself, because proxies look them up; nil without any.
func (g *graph) namedEndpoints(c *incr.Ctx, s *config.Service, k clusterKey, policy *networking.TrafficPolicy) *endpointv3.ClusterLoadAssignment {
	var labels map[string]string
	if rule, ok := g.merged.Get(c, k.Rule); ok {
		labels = cluster.FindSubset(rule.Spec, k.Subset).GetLabels()
	}
	spec := endpoint.Spec{
		Refusals: g.refusals.Of(c, s.Namespace),
		Cluster:  cluster.Name{Port: k.Port, Subset: k.Subset, Host: s.Host, ByName: k.Client.ByName}.String(),
		Service:  s.Key,
		Port:     k.Port,
		PortName: s.Port(k.Port).Name,
		Subset:   endpoint.Selector(labels),
	}
	setting, failover := cluster.Locality(policy, s, g.clusterSettings.Of(c, only).Locality)
	spec.Balance = endpoint.BalanceFor(setting, endpoint.Place{Locality: k.Client.Locality}, failover).ByName()
	out := endpoint.BuildNames(spec, g.endpointsOf.Of(c, s.Key))
	if len(out.Endpoints) == 0 {
		return nil
	}
	return out
}

// staticKey names a cluster that doesn't depend on any service.
type staticKey struct {
	Name   string
	Client clientKey
}

// staticNames are those that proxies of a flavour have.
func staticNames(k clientKey) []string {
	if k.Router {
		return []string{cluster.BlackHole}
	}
	return []string{cluster.BlackHole, cluster.Passthrough, cluster.InboundPassthrough}
}

func (g *graph) buildStatic(c *incr.Ctx, k staticKey) ([]byte, error) {
	mesh := g.clusterSettings.Of(c, only)
	timeout := mesh.ConnectTimeout
	var out *clusterv3.Cluster
	switch k.Name {
	case cluster.BlackHole:
		return encode.Bytes(cluster.BuildBlackHole(timeout)), nil
	case cluster.Passthrough:
		out = cluster.BuildPassthrough(timeout, k.Client.client().Filters)
	case cluster.InboundPassthrough:
		out = cluster.BuildInboundPassthrough(timeout, k.Client.Families.Source())
	}
	mesh.KeepAlive(out)
	if k.Client.SameCase {
		cluster.SameCase(out, config.Sniffed)
	}
	return encode.Bytes(out), nil
}

// inboundClusterKey is the targets (encoded) that share one port of a workload.
type inboundClusterKey struct {
	Targets  string
	Ingress  ingressKey
	Families config.Families
	// SameCase is as clientKey has it.
	SameCase bool
}

func inboundName(t target) string { return cluster.InboundName(t.Target) }

func (g *graph) buildInboundCluster(c *incr.Ctx, k inboundClusterKey) ([]byte, error) {
	var in cluster.Inbound
	for _, t := range decodeTargets(k.Targets) {
		s, ok := g.services.Get(c, t.Service)
		if !ok || s.value.Port(t.Number) == nil {
			continue
		}
		if len(in.Services) == 0 {
			in.Protocol = config.ParseProtocol(s.value.Port(t.Number).Protocol)
		}
		in.Port = t.Target
		in.Services = append(in.Services, cluster.Service{Host: s.value.Host, Name: s.value.Name, Namespace: s.value.Namespace})
	}
	if len(in.Services) == 0 {
		return nil, incr.Absent
	}
	g.limit(c, &in, k.Ingress, decodeTargets(k.Targets))
	in.ConnectTimeout, in.Source = g.clusterSettings.Of(c, only).ConnectTimeout, k.Families.Source()
	if g.localInbound.Of(c, only) {
		in.Endpoint = net.JoinHostPort(k.Families.Loopback()[0], portName(in.Port))
	}
	out := cluster.BuildInbound(in)
	g.clusterSettings.Of(c, only).KeepAlive(out)
	if k.SameCase {
		cluster.SameCase(out, in.Protocol)
	}
	return encode.Bytes(out), nil
}
