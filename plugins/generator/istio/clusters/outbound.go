package clusters

import (
	"bytes"
	"slices"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authn"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/endpoint"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/patches"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/workload"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Outbound are the clusters by which proxies send: one function makes each, keyed by the least it
// depends on; the collection says which of them a set has.
type Outbound struct {
	from    *From
	cluster *incr.Func[key, []byte]
	// patched are clusters after patches.
	patched *incr.Func[patchedKey, []byte]
	// Sets are those that views have; InSet lists their clusters.
	Sets  *incr.Input[Set, struct{}]
	InSet *incr.Index[Set, Cluster, []byte]
}

// Set is the outbound clusters of a scope, as proxies of a flavour get them.
type Set struct {
	Scope  scope.Scope
	Client Client
	// Patches change them (patches.Keys).
	Patches string
}

// Client is cluster.Client, comparable and ordered.
type Client struct {
	MetadataExchange, Router bool
	// ByName: the clusters to which a gateway passes TLS on by its server name.
	ByName   bool
	Families config.Families
	// Resolver looks up hosts that nobody knows; empty: the one of the system, or nobody asks.
	Resolver string
	// Certificates is where they have those that they show as clients.
	Certificates encode.Certificates
	// Shown names the credential that their Gateway shows to backends; empty: none.
	Shown string
	// Place is where the proxies are, for clusters that hold their endpoints; empty where nobody
	// asks.
	Place workload.Place
	// Network is theirs, for clusters that hold their endpoints; empty where that makes no
	// difference.
	Network workload.Network
	// Zones is as cluster.Client has it.
	Zones bool
	// SameCase: names of headers keep their case in HTTP/1.
	SameCase bool
}

// ByName are the clusters for which TLS names servers.
func (s Set) ByName() Set {
	s.Client.ByName = true
	return s
}

// Anywhere is the key for what doesn't ask where proxies are.
func (k Client) Anywhere() Client {
	k.Place, k.Network = workload.Place{}, workload.Network{}
	return k
}

func (k Client) client() cluster.Client {
	return cluster.Client{
		Filters:      cluster.Filters{MetadataExchange: k.MetadataExchange},
		Certificates: k.Certificates,
		Router:       k.Router,
		Shown:        k.Shown,

		Families: k.Families,
		Resolver: k.Resolver,
		Zones:    k.Zones,
	}
}

// Cluster names a cluster of a set.
type Cluster struct {
	Set  Set
	Name string
}

// key names a cluster: a service's port, a subset of a rule (by key), and what it depends on of its
// clients.
type key struct {
	Service string
	Port    uint32
	Subset  string
	Rule    string
	// Datagrams: the port is that for UDP.
	Datagrams bool
	Client    Client
}

// name is the cluster's, for a host.
func (k key) name(host string) cluster.Name {
	return cluster.Name{Port: k.Port, Subset: k.Subset, Host: host, ByName: k.Client.ByName, Datagrams: k.Datagrams}
}

func newOutbound(graph *incr.Graph, from *From) *Outbound {
	x := &Outbound{from: from}
	x.cluster = incr.NewFunc(graph, "outbound cluster", bytes.Equal, x.build)
	x.Sets = incr.NewInput[Set](graph, "cluster sets", incr.Same[struct{}])
	pairs := incr.Join(x.Sets, x.from.Scopes.Visible, "hosts in cluster sets",
		func(s Set, _ struct{}) []scope.Scope { return []scope.Scope{s.Scope} },
		func(h scope.Host, _ *config.Service) []scope.Scope { return []scope.Scope{h.Scope} },
		scope.SamePointer[config.Service],
		func(_ *incr.Ctx, _ incr.Pair[Set, scope.Host], _ struct{}, s *config.Service) (*config.Service, error) {
			return s, nil
		})
	all := incr.FlatMap(pairs, "clusters of host", bytes.Equal,
		func(c *incr.Ctx, k incr.Pair[Set, scope.Host], s *config.Service) ([]incr.Item[Cluster, []byte], error) {
			return x.clustersOf(c, k.Left, s), nil
		})
	x.InSet = incr.NewIndex(all, "clusters of set", func(k Cluster, _ []byte) []Set { return []Set{k.Set} })
	x.patched = incr.NewFunc(graph, "patched cluster", bytes.Equal, x.buildPatched)
	return x
}

// clustersOf are the clusters of a service: one for each port, and one for each port and subset of
// its rule.
func (x *Outbound) clustersOf(c *incr.Ctx, set Set, s *config.Service) []incr.Item[Cluster, []byte] {
	if set.Client.ByName && s.External {
		return nil
	}
	rule := x.from.Rules.For(c, set.Scope.Client(), s)
	subsets := []string{""}
	k := key{Service: s.Key, Client: set.Client}
	if !cluster.Resolves(s) {
		k.Client = k.Client.Anywhere()
	}
	if rule != nil {
		k.Rule = rule.Key
		if !cluster.IsDynamic(s) { // whose hosts have no labels
			for _, sub := range rule.Spec.Subsets {
				subsets = append(subsets, sub.Name)
			}
		}
	}
	var out []incr.Item[Cluster, []byte]
	for _, p := range s.Ports {
		k.Port, k.Datagrams = p.Number, config.ParseProtocol(p.Protocol) == config.UDP
		switch {
		case k.Datagrams && !x.leadsDatagrams(c, set, s, p), !k.Datagrams && cluster.IsDynamic(s) && !cluster.CanBeDynamic(config.ParseProtocol(p.Protocol)):
			continue
		case k.Datagrams: // no route leads to a subset
			subsets = subsets[:1]
		}
		for _, k.Subset = range subsets {
			name := k.name(s.Host).String()
			if b, ok := x.patch(c, set.Patches, name, k); ok {
				out = append(out, incr.Item[Cluster, []byte]{Key: Cluster{set, name}, Value: b})
			}
		}
	}
	return out
}

// leadsDatagrams reports whether a route leads datagrams to a service's port for UDP: without one
// nobody needs its cluster.
func (x *Outbound) leadsDatagrams(c *incr.Ctx, set Set, s *config.Service, p *pb.Port) bool {
	return set.Client.Router && !set.Client.ByName && !cluster.IsDynamic(s) &&
		x.from.Scopes.VirtualServices.LeadsDatagrams(c, set.Scope.Namespace, s.Host, p.Number)
}

func (x *Outbound) build(c *incr.Ctx, k key) ([]byte, error) {
	s, ok := x.from.Tables.Services.Get(c, k.Service)
	if !ok || k.name(s.Value.Host).PortOf(s.Value) == nil {
		return nil, incr.Absent
	}
	in := cluster.Outbound{
		Name:       k.name(s.Value.Host),
		Service:    s.Value,
		Protocol:   config.ParseProtocol(k.name(s.Value.Host).PortOf(s.Value).Protocol),
		Mesh:       x.from.Mesh.Clusters(c),
		Client:     k.Client.client(),
		Identities: x.namesOf(c, s.Value),
		Refuses:    x.from.Policies.Mode(c, s.Value.Namespace) == authn.Disable,
	}
	var spec *networking.DestinationRule
	if rule, ok := x.from.Rules.Merged(c, k.Rule); ok {
		spec = rule.Spec
		in.Policy = cluster.PolicyFor(spec, k.Subset, k.Port)
		in.Original = cluster.OriginalSubset(spec, k.Subset, k.Port)
		in.RulePath = rule.Path("destination-rule")
		in.Selected = spec.GetWorkloadSelector() != nil
	}
	in.Policy = in.Mesh.Underlay(in.Policy)
	if cluster.PassesThrough(s.Value, spec, k.Subset) {
		in.Refuses = in.Refuses || !x.allMutual(c, s.Value.Key, k.Port)
	}
	if cluster.Resolves(s.Value) && !in.Original {
		in.Endpoints = x.namedEndpoints(c, s.Value, k, in.Policy)
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
func (x *Outbound) namesOf(c *incr.Ctx, s *config.Service) []string {
	names := slices.Concat(s.SubjectAltNames, x.from.Workloads.Identities(c, s.Key))
	for _, account := range s.ServiceAccounts {
		e := endpoint.Endpoint{Endpoint: pb.Endpoint{Namespace: s.Namespace, ServiceAccount: account}}
		if name := e.Identity(x.from.Mesh.Listeners(c).TrustDomain); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return istio.Aliases(names, x.from.Policies.TrustDomains(c)[1:])
}

// allMutual reports whether every endpoint of a service's port speaks the mesh's mutual TLS, and
// there is one.
func (x *Outbound) allMutual(c *incr.Ctx, service string, port uint32) bool {
	some := false
	for _, e := range x.from.Workloads.Endpoints(c, service) {
		if e.ServicePort == port {
			some = true
			if e.TlsMode != endpoint.Mutual {
				return false
			}
		}
	}
	return some
}

// namedEndpoints are the endpoints that stand in the cluster itself, because proxies look them up;
// nil without any.
func (x *Outbound) namedEndpoints(c *incr.Ctx, s *config.Service, k key, policy *networking.TrafficPolicy) *endpointv3.ClusterLoadAssignment {
	var rule *networking.DestinationRule
	if r, ok := x.from.Rules.Merged(c, k.Rule); ok {
		rule = r.Spec
	}
	spec := endpoint.Spec{
		Cluster:  k.name(s.Host).String(),
		Service:  s.Key,
		Port:     k.Port,
		PortName: k.name(s.Host).PortOf(s).Name,
		Subset:   endpoint.Selector(cluster.FindSubset(rule, k.Subset).GetLabels()),
		Dual:     x.from.DualStack,
	}
	speak(c, x.from.Policies, &spec, cluster.TLSTowards(rule, k.Subset, k.Port), s.Namespace)
	spec.Unready, spec.Unhealthy = s.PublishNotReady, cluster.Unhealthy(policy, s)
	near := cluster.NearnessOf(policy, s, x.from.Mesh.Clusters(c))
	spec.Balance = near.Balance(k.Client.Place.Endpoint(), k.Client.Zones)
	spec.Horizon = x.from.Networks.Horizon(c, k.Client.Network, s)
	spec.Horizon.Networks = nil // gateways stand for endpoints that are pushed, not for those that are looked up
	out := endpoint.BuildNames(spec, x.from.Workloads.Endpoints(c, s.Key))
	if len(out.Endpoints) == 0 {
		return nil
	}
	return out
}

// patchedKey names an outbound cluster and the patches that change it.
type patchedKey struct {
	Patches, Name string
	Cluster       key
}

// patch is an outbound cluster after patches; false where there is none, or where a patch removes
// it.
func (x *Outbound) patch(c *incr.Ctx, patches, name string, k key) ([]byte, bool) {
	if patches == "" {
		return x.cluster.Get(c, k)
	}
	return x.patched.Get(c, patchedKey{patches, name, k})
}

func (x *Outbound) buildPatched(c *incr.Ctx, k patchedKey) ([]byte, error) {
	body, ok := x.cluster.Get(c, k.Cluster)
	if !ok {
		return nil, incr.Absent
	}
	body, ok = x.from.Patches.Set(c, k.Patches).Cluster(patches.Side(k.Cluster.Client.Router), k.Name, nil, body)
	if !ok {
		return nil, incr.Absent
	}
	return body, nil
}
