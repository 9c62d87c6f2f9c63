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
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/ingress"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/workload"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// clusters: one function makes each cluster, keyed by the least it depends on; the collection says which of them a set has.
type clusters struct {
	cluster *incr.Func[clusterKey, []byte]
	// sets that views have; inSet lists their clusters.
	clusterSets *incr.Input[clusterSet, struct{}]
	inSet       *incr.Index[clusterSet, setCluster, []byte]
	static      *incr.Func[staticKey, []byte]
	// patched are outbound clusters after patches.
	patched *incr.Func[patchedClusterKey, []byte]
	behind  *incr.Func[inboundClusterKey, []byte]
}

// clusterSet is the outbound clusters of a scope, as proxies of a flavour get them.
type clusterSet struct {
	Scope  scope.Scope
	Client clientKey
	// Patches change them (patches.Keys).
	Patches string
}

// clientKey is cluster.Client, comparable and ordered.
type clientKey struct {
	MetadataExchange, Router bool
	// ByName: the clusters to which a gateway passes TLS on by its server name.
	ByName   bool
	Families config.Families
	// Certificates is where they have those that they show as clients.
	Certificates encode.Certificates
	// Place is where the proxies are, for clusters that hold their endpoints; empty where nobody asks.
	Place workload.Place
	// Network is theirs, for clusters that hold their endpoints; empty where that makes no difference.
	Network workload.Network
	// Zones is as clientPlace has it.
	Zones bool
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
	k.Place, k.Network = workload.Place{}, workload.Network{}
	return k
}

func (k clientKey) client() cluster.Client {
	return cluster.Client{
		Filters:      cluster.Filters{MetadataExchange: k.MetadataExchange},
		Certificates: k.Certificates,
		Router:       k.Router,

		Families: k.Families,
		Zones:    k.Zones,
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
	pairs := incr.Join(g.clusterSets, g.scopes.Visible, "hosts in cluster sets",
		func(s clusterSet, _ struct{}) []scope.Scope { return []scope.Scope{s.Scope} },
		func(h scope.Host, _ *config.Service) []scope.Scope { return []scope.Scope{h.Scope} },
		scope.SamePointer[config.Service],
		func(_ *incr.Ctx, _ incr.Pair[clusterSet, scope.Host], _ struct{}, s *config.Service) (*config.Service, error) {
			return s, nil
		})
	all := incr.FlatMap(pairs, "clusters of host", bytes.Equal,
		func(c *incr.Ctx, k incr.Pair[clusterSet, scope.Host], s *config.Service) ([]incr.Item[setCluster, []byte], error) {
			return g.clustersOf(c, k.Left, s), nil
		})
	g.inSet = incr.NewIndex(all, "clusters of set", func(k setCluster, _ []byte) []clusterSet { return []clusterSet{k.Set} })
	g.patched = incr.NewFunc(g.Graph, "patched cluster", bytes.Equal, g.buildPatchedCluster)
	g.static = incr.NewFunc(g.Graph, "static cluster", bytes.Equal, g.buildStatic)
	g.behind = incr.NewFunc(g.Graph, "inbound cluster", bytes.Equal, g.buildInboundCluster)
}

// clustersOf are the clusters of a service: one for each port, and one for each port and subset of its rule.
func (g *graph) clustersOf(c *incr.Ctx, set clusterSet, s *config.Service) []incr.Item[setCluster, []byte] {
	if set.Client.ByName && s.External {
		return nil
	}
	rule := g.rules.For(c, set.Scope.Client(), s)
	subsets := []string{""}
	k := clusterKey{Service: s.Key, Client: set.Client}
	if !cluster.Resolves(s) {
		k.Client = k.Client.anywhere()
	}
	if rule != nil {
		k.Rule = rule.Key
		if !cluster.IsDynamic(s) { // whose hosts have no labels
			for _, sub := range rule.Spec.Subsets {
				subsets = append(subsets, sub.Name)
			}
		}
	}
	var out []incr.Item[setCluster, []byte]
	for _, p := range s.Ports {
		protocol := config.ParseProtocol(p.Protocol)
		if protocol == config.UDP || cluster.IsDynamic(s) && !cluster.CanBeDynamic(protocol) {
			continue
		}
		for _, k.Subset = range subsets {
			k.Port = p.Number
			name := cluster.Name{Port: p.Number, Subset: k.Subset, Host: s.Host, ByName: set.Client.ByName}.String()
			if b, ok := g.patchedCluster(c, set.Patches, name, k); ok {
				out = append(out, incr.Item[setCluster, []byte]{Key: setCluster{set, name}, Value: b})
			}
		}
	}
	return out
}

func (g *graph) buildCluster(c *incr.Ctx, k clusterKey) ([]byte, error) {
	s, ok := g.tables.Services.Get(c, k.Service)
	if !ok || s.Value.Port(k.Port) == nil {
		return nil, incr.Absent
	}
	in := cluster.Outbound{
		Name:       cluster.Name{Port: k.Port, Subset: k.Subset, Host: s.Value.Host, ByName: k.Client.ByName},
		Service:    s.Value,
		Protocol:   config.ParseProtocol(s.Value.Port(k.Port).Protocol),
		Mesh:       g.mesh.Clusters(c),
		Client:     k.Client.client(),
		Identities: g.namesOf(c, s.Value),
		Refuses:    g.policies.Mode(c, s.Value.Namespace) == authn.Disable,
	}
	var spec *networking.DestinationRule
	if rule, ok := g.rules.Merged(c, k.Rule); ok {
		spec = rule.Spec
		in.Policy = cluster.PolicyFor(spec, k.Subset, k.Port)
		in.Original = cluster.OriginalSubset(spec, k.Subset, k.Port)
		in.RulePath = rule.Path("destination-rule")
		in.Selected = spec.GetWorkloadSelector() != nil
	}
	in.Policy = in.Mesh.Underlay(in.Policy)
	if cluster.PassesThrough(s.Value, spec, k.Subset) {
		in.Refuses = in.Refuses || !g.allMutual(c, s.Value.Key, k.Port)
	}
	if cluster.Resolves(s.Value) && !in.Original {
		in.Endpoints = g.namedEndpoints(c, s.Value, k, in.Policy)
		if in.Endpoints == nil {
			return nil, incr.Absent
		}
	}
	out := cluster.BuildOutbound(in)
	if k.Client.SameCase && out != nil {
		cluster.SameCase(out, in.Protocol)
	}
	return encode.Bytes(out), nil
}

// namesOf are the identities that a service's workloads may have.
func (g *graph) namesOf(c *incr.Ctx, s *config.Service) []string {
	names := slices.Concat(s.SubjectAltNames, g.workloads.Identities(c, s.Key))
	for _, account := range s.ServiceAccounts {
		e := endpoint.Endpoint{Endpoint: pb.Endpoint{Namespace: s.Namespace, ServiceAccount: account}}
		if name := e.Identity(g.mesh.Listeners(c).TrustDomain); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return istio.Aliases(names, g.policies.TrustDomains(c)[1:])
}

// allMutual reports whether every endpoint of a service's port speaks the mesh's mutual TLS, and there is one.
func (g *graph) allMutual(c *incr.Ctx, service string, port uint32) bool {
	some := false
	for _, e := range g.workloads.Endpoints(c, service) {
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
	var rule *networking.DestinationRule
	if r, ok := g.rules.Merged(c, k.Rule); ok {
		rule = r.Spec
	}
	spec := endpoint.Spec{
		Cluster:  cluster.Name{Port: k.Port, Subset: k.Subset, Host: s.Host, ByName: k.Client.ByName}.String(),
		Service:  s.Key,
		Port:     k.Port,
		PortName: s.Port(k.Port).Name,
		Subset:   endpoint.Selector(cluster.FindSubset(rule, k.Subset).GetLabels()),
		Dual:     g.dualStack,
	}
	g.speak(c, &spec, cluster.TLSTowards(rule, k.Subset, k.Port), s.Namespace)
	spec.Unready, spec.Unhealthy = s.PublishNotReady, cluster.Unhealthy(policy, s)
	near := cluster.NearnessOf(policy, s, g.mesh.Clusters(c))
	spec.Balance = near.Balance(k.Client.Place.Endpoint(), k.Client.Zones)
	spec.Horizon = g.networks.Horizon(c, k.Client.Network, s)
	spec.Horizon.Networks = nil // gateways stand for endpoints that are pushed, not for those that are looked up
	out := endpoint.BuildNames(spec, g.workloads.Endpoints(c, s.Key))
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

// staticNames are those that proxies of a flavour have; dynamic: hosts that nobody knows are looked up.
func staticNames(k clientKey, dynamic bool) []string {
	out := []string{cluster.BlackHole}
	if !k.Router {
		out = append(out, cluster.Passthrough, cluster.InboundPassthrough)
		if dynamic {
			out = append(out, cluster.AllowAnyDynamic)
		}
	}
	if k.Certificates.Socket {
		out = append(out, encode.SocketCluster)
	}
	return out
}

func (g *graph) buildStatic(c *incr.Ctx, k staticKey) ([]byte, error) {
	mesh := g.mesh.Clusters(c)
	timeout := mesh.ConnectTimeout
	var out *clusterv3.Cluster
	switch k.Name {
	case cluster.BlackHole:
		return encode.Bytes(cluster.BuildBlackHole(timeout)), nil
	case encode.SocketCluster:
		return encode.Bytes(cluster.BuildSecretSocket(timeout)), nil
	case cluster.Passthrough:
		out = cluster.BuildPassthrough(mesh, k.Client.client().Filters)
	case cluster.AllowAnyDynamic:
		return encode.Bytes(cluster.BuildAllowAnyDynamic(mesh, k.Client.client())), nil
	case cluster.InboundPassthrough:
		out = cluster.BuildInboundPassthrough(mesh, k.Client.Families.Source())
	}
	mesh.KeepAlive(out)
	if k.Client.SameCase {
		cluster.SameCase(out, config.Sniffed)
	}
	return encode.Bytes(out), nil
}

// inboundClusterKey is the targets (encoded) that share one port of a workload.
type inboundClusterKey struct {
	Targets string
	Ingress ingress.Key
	// Scope whose rules count; empty: that of the services' namespace.
	Scope    scope.Scope
	Families config.Families
	// SameCase is as clientKey has it.
	SameCase bool
	// Patches change them (patches.Keys).
	Patches string
}

func inboundName(t workload.Target) string { return cluster.InboundName(t.Target) }

// serviceNamed is a service as the metadata of clusters name it.
func serviceNamed(s *config.Service) cluster.Service {
	return cluster.Service{Host: s.Host, Name: s.Name, Namespace: s.Namespace, External: s.External}
}

func (g *graph) buildInboundCluster(c *incr.Ctx, k inboundClusterKey) ([]byte, error) {
	var in cluster.Inbound
	var number uint32
	for _, t := range workload.DecodeTargets(k.Targets) {
		s, ok := g.targets.Service(c, t.Service)
		if !ok || s.Value.Port(t.Number) == nil {
			continue
		}
		if len(in.Services) == 0 {
			in.Protocol, number = config.ParseProtocol(s.Value.Port(t.Number).Protocol), t.Number
			in.Redirect = cluster.Redirected(s.Value, t.Number)
		}
		in.Port = t.Target
		named := serviceNamed(s.Value)
		if t.Number == number && !slices.Contains(in.Services, named) { // others are at a port of another number
			in.Services = append(in.Services, named)
		}
	}
	if len(in.Services) == 0 {
		return nil, incr.Absent
	}
	g.limit(c, &in, k, workload.DecodeTargets(k.Targets))
	if g.mesh.LocalInbound(c) {
		in.Endpoint = net.JoinHostPort(k.Families.Loopback()[0], portName(in.Port))
	}
	in.Stat = g.inboundStat(c, workload.DecodeTargets(k.Targets)[0])
	return g.buildBehind(c, in, k), nil
}

// buildBehind makes the cluster behind a port, whoever names it, as the proxy and the mesh want it.
func (g *graph) buildBehind(c *incr.Ctx, in cluster.Inbound, k inboundClusterKey) []byte {
	in.Mesh, in.Source = g.mesh.Clusters(c), k.Families.Behind()
	out := cluster.BuildInbound(in)
	if k.SameCase {
		cluster.SameCase(out, in.Protocol)
	}
	return encode.Bytes(out)
}

// inboundStat names the cluster behind a workload's port in statistics; empty: Istio's name.
func (g *graph) inboundStat(c *incr.Ctx, t workload.Target) string {
	pattern := g.mesh.Clusters(c).InboundStat
	s, ok := g.targets.Service(c, t.Service)
	if pattern == "" || !ok {
		return ""
	}
	of := cluster.TowardsService(s.Value, t.Number, "")
	of.Target = t.Target
	return cluster.StatName(pattern, of)
}
