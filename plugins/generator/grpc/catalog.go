package grpc

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/proto"
	meshv1 "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/clusterlocal"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/plugins/validation/rules"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// catalog is what is known at a state, decoded when the first client asks.
type catalog struct {
	tables []*state.Table
	domain string
	mesh   *meshv1.MeshConfig
	// services by host, endpoints by NAMESPACE/HOST.
	services  map[string][]published
	endpoints map[string][]*pb.Endpoint
	// specs are those of rows that were read: as the row has it, or as it was before a row that is
	// refused; nil: there was none.
	specs map[*pb.Row]proto.Message
	// Resources, the oldest first.
	routing []resource[*networking.VirtualService]
	rules   []resource[*networking.DestinationRule]
	peers   []resource[*security.PeerAuthentication]
	// authorization policies.
	authorization []resource[*security.AuthorizationPolicy]
	// local says of which hosts clients reach endpoints of their own cluster alone;
	// severalClusters: there are endpoints in more than one.
	local           []clusterlocal.Host
	severalClusters bool
	// sourceLabels are names of the clients' labels that routes ask for.
	sourceLabels map[string]bool
	// failsOver: some endpoints depend on where the client is.
	failsOver bool
}

type published struct {
	*pb.Service
	created int64
}

// resource is one of Istio's API.
type resource[M proto.Message] struct {
	namespace string
	created   int64
	key       string
	spec      M
}

// tableNames are the tables that are read.
func tableNames() []string {
	return []string{
		state.Services, state.Endpoints, state.Mesh, kinds.VirtualService, kinds.DestinationRule,
		kinds.PeerAuthentication, kinds.AuthorizationPolicy,
	}
}

// of reports whether the catalog is that of a state.
func (c *catalog) of(s *state.State) bool {
	for i, name := range tableNames() {
		if c.tables[i] != s.Table(name) {
			return false
		}
	}
	return true
}

// newCatalog reads a state; before is what the one before it was read as, nil for none.
func newCatalog(s *state.State, domain string, before *catalog) *catalog {
	if before == nil {
		before = &catalog{}
	}
	c := &catalog{domain: domain, specs: map[*pb.Row]proto.Message{}, mesh: &meshv1.MeshConfig{RootNamespace: "istio-system", TrustDomain: "cluster.local"}}
	for _, name := range tableNames() {
		c.tables = append(c.tables, s.Table(name))
	}
	for _, r := range s.Table(state.Mesh).All() {
		var m meshv1.MeshConfig
		if proto.Unmarshal(r.Payload, &m) == nil {
			c.mesh = &m
		}
	}
	c.local = clusterlocal.Hosts(c.mesh, domain)
	c.load(s)
	c.routing = resources(c, before, s.Table(kinds.VirtualService), before.routing)
	c.rules = resources(c, before, s.Table(kinds.DestinationRule), before.rules)
	c.authorization = resources(c, before, s.Table(kinds.AuthorizationPolicy), before.authorization)
	c.failsOver = slices.ContainsFunc(c.rules, failsOver)
	c.peers = resources(c, before, s.Table(kinds.PeerAuthentication), before.peers)
	c.sourceLabels = sourceLabels(c.routing)
	return c
}

// sourceLabels are the names of labels that routes ask for.
func sourceLabels(routing []resource[*networking.VirtualService]) map[string]bool {
	out := map[string]bool{}
	for _, r := range routing {
		for _, route := range r.spec.Http {
			for _, m := range route.Match {
				for name := range m.SourceLabels {
					out[name] = true
				}
			}
		}
	}
	return out
}

// labelsAmong are those of a client's labels that routes ask for; nil for none.
func labelsAmong(names map[string]bool, labels map[string]string) map[string]string {
	var out map[string]string
	for name := range names {
		if value, ok := labels[name]; ok {
			if out == nil {
				out = map[string]string{}
			}
			out[name] = value
		}
	}
	return out
}

// read returns a row's spec, or what it was where the row is refused.
func read[M proto.Message](row *pb.Row, was M) proto.Message {
	spec, err := kinds.Decode[M](row)
	if err != nil || rules.Row(row, spec) != nil {
		return was
	}
	return spec
}

// load decodes services and endpoints. Rows that can't be decoded are nobody's.
func (c *catalog) load(s *state.State) {
	c.services, c.endpoints = map[string][]published{}, map[string][]*pb.Endpoint{}
	for _, r := range s.Table(state.Services).All() {
		m := &pb.Service{}
		if m.Unmarshal(r.Payload) == nil {
			c.services[m.Host] = append(c.services[m.Host], published{m, r.Created})
		}
	}
	for _, list := range c.services {
		slices.SortFunc(list, func(a, b published) int {
			return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.Namespace, b.Namespace))
		})
	}
	cluster := ""
	for _, r := range s.Table(state.Endpoints).All() {
		m := &pb.Endpoint{}
		if m.Unmarshal(r.Payload) == nil {
			cluster = cmp.Or(cluster, m.Cluster)
			c.severalClusters = c.severalClusters || m.Cluster != "" && m.Cluster != cluster
			key := kinds.Key(m.Namespace, m.Host)
			c.endpoints[key] = append(c.endpoints[key], m)
		}
	}
	for _, list := range c.endpoints {
		slices.SortFunc(list, func(a, b *pb.Endpoint) int {
			return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Address, b.Address), cmp.Compare(a.Port, b.Port))
		})
	}
}

// resources reads a table for a catalog. A row that the rules for files refuse, whoever published
// it, is as it was before, was, if it was there: a policy that protects doesn't end by a mistake.
func resources[M proto.Message](c, before *catalog, t *state.Table, was []resource[M]) []resource[M] {
	last := make(map[string]M, len(was))
	for _, r := range was {
		last[r.key] = r.spec
	}
	var out []resource[M]
	for key, r := range t.All() {
		spec, known := before.specs[r]
		if !known {
			spec = read(r, last[key])
		}
		c.specs[r] = spec
		if m, ok := spec.(M); ok && m.ProtoReflect().IsValid() {
			namespace, _ := kinds.SplitKey(key)
			out = append(out, resource[M]{namespace, r.Created, key, m})
		}
	}
	slices.SortFunc(out, func(a, b resource[M]) int {
		_, nameA := kinds.SplitKey(a.key)
		_, nameB := kinds.SplitKey(b.key)
		return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(nameA, nameB), cmp.Compare(a.namespace, b.namespace))
	})
	return out
}

// service returns the service that a client of the view's namespace sees under a host: its own
// namespace's before others', the oldest of these.
func (c *catalog) service(v view, host string) *pb.Service {
	var found *pb.Service
	for _, s := range c.services[host] {
		switch {
		case !v.sees(s.ExportTo, c.mesh.DefaultServiceExportTo, s.Namespace):
		case s.Namespace == v.Namespace:
			return s.Service
		case found == nil:
			found = s.Service
		}
	}
	return found
}

// sees reports whether a namespace sees what another exports; defaults are the mesh's for resources
// that don't say.
func (v view) sees(exportTo, defaults []string, owner string) bool {
	return istio.ReachOf(exportTo, defaults, owner, v.Namespace) != istio.Nobody
}
