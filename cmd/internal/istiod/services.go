package istiod

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	api "istio.io/api/mesh/v1alpha1"
)

type (
	service struct {
		Attributes      attributes
		Ports           []port    `json:"ports,omitempty"`
		Created         time.Time `json:"creationTime"`
		Host            string    `json:"hostname"`
		VIPs            byCluster `json:"clusterVIPs"`
		Address         string    `json:"defaultAddress,omitempty"`
		Resolution      int
		MeshExternal    bool
		ResourceVersion string
	}
	attributes struct {
		ServiceRegistry          string
		Name                     string
		Namespace                string
		Labels                   map[string]string
		ExportTo                 map[string]struct{}
		LabelSelectors           map[string]string
		Aliases                  []alias
		ClusterExternalAddresses byCluster
		ClusterExternalPorts     map[string]map[string]uint32
		NodeLocal                bool
		TrafficDistribution      int
		PublishNotReadyAddresses bool
	}
	alias     struct{ Hostname string }
	byCluster struct{ Addresses map[string][]string }
	port      struct {
		Name     string `json:"name,omitempty"`
		Number   uint32 `json:"port"`
		Protocol string `json:"protocol,omitempty"`
	}
)

// resolutions are istiod's numbers of ours.
var resolutions = map[pb.ServiceResolution]int{
	pb.ServiceResolutionStatic: 0, pb.ServiceResolutionDns: 1, pb.ServiceResolutionNone: 2,
	pb.ServiceResolutionDnsRoundRobin: 3, pb.ServiceResolutionDynamicDns: 5,
}

// distributions are istiod's numbers of Kubernetes' trafficDistribution.
var distributions = map[string]int{"PreferClose": 1, "PreferSameZone": 1, "PreferSameNode": 2}

// of names a service.
type of struct{ namespace, host string }

// kubernetes is the registry whose services have addresses by cluster.
const kubernetes = "Kubernetes"

func newService(r *pb.Row, v *pb.Service) service {
	s := service{
		Attributes: attributes{
			ServiceRegistry: v.Registry, Name: v.Name, Namespace: v.Namespace, Labels: v.Labels, LabelSelectors: v.Selector, NodeLocal: v.NodeLocal,
			TrafficDistribution: distributions[v.TrafficDistribution], PublishNotReadyAddresses: v.PublishNotReady,
		},
		Host: v.Host, Resolution: resolutions[v.Resolution], MeshExternal: v.External, Created: time.Unix(0, r.Created).UTC(),
	}
	if len(v.Addresses) > 0 {
		s.Address = v.Addresses[0]
	} else {
		s.Address = unspecified
	}
	for _, p := range v.Ports {
		s.Ports = append(s.Ports, port{p.Name, p.Number, p.Protocol})
	}
	for cluster, addresses := range v.ClusterAddresses {
		s.VIPs.set(cluster, strings.Split(addresses, ","))
	}
	if v.Registry == kubernetes && len(v.ClusterAddresses) == 0 && len(v.Addresses) > 0 {
		s.VIPs.set(cmp.Or(v.Cluster, kubernetes), v.Addresses)
	}
	for cluster, addresses := range v.ExternalAddresses {
		s.Attributes.ClusterExternalAddresses.set(cluster, strings.Split(addresses, ","))
	}
	for _, to := range v.ExportTo {
		if s.Attributes.ExportTo == nil {
			s.Attributes.ExportTo = map[string]struct{}{}
		}
		s.Attributes.ExportTo[to] = struct{}{}
	}
	for _, name := range v.Aliases {
		s.Attributes.Aliases = append(s.Attributes.Aliases, alias{name})
	}
	return s
}

// unspecified is the address of services that have none.
const unspecified = "0.0.0.0"

func (b *byCluster) set(cluster string, addresses []string) {
	if b.Addresses == nil {
		b.Addresses = map[string][]string{}
	}
	b.Addresses[cluster] = addresses
}

// services returns the rows of services that can be read, in order of names.
func (s *source) services(each func(*pb.Row, *pb.Service)) {
	for _, r := range s.sorted(state.Services) {
		v := &pb.Service{}
		if v.Unmarshal(r.Payload) == nil {
			each(r, v)
		}
	}
}

// endpoints are the rows of endpoints that can be read, in order of their places.
func (s *source) endpoints() []*pb.Endpoint {
	var all []*pb.Endpoint
	for _, r := range s.sorted(state.Endpoints) {
		e := &pb.Endpoint{}
		if e.Unmarshal(r.Payload) == nil {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b *pb.Endpoint) int { return cmp.Compare(a.Index, b.Index) })
	return all
}

// registryz shows services in the order in which they came to be.
func (s *source) registryz(w http.ResponseWriter, _ *http.Request) {
	all := []service{}
	s.services(func(r *pb.Row, v *pb.Service) { all = append(all, newService(r, v)) })
	slices.SortStableFunc(all, func(a, b service) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Host, b.Host)) })
	write(w, all)
}

type (
	shards struct {
		Shards          map[string][]endpoint
		ServiceAccounts map[string]struct{}
	}
	endpoint struct {
		Labels          map[string]string
		Addresses       []string
		ServicePortName string
		ServiceAccount  string
		Network         string
		Locality        struct{ Label, ClusterID string }
		EndpointPort    uint32
		LbWeight        uint32
		TLSMode         string
		Namespace       string
		WorkloadName    string
		HostName        string
		SubDomain       string
		HealthStatus    int
		NodeName        string
	}
)

// healths are istiod's numbers of ours.
var healths = map[pb.EndpointHealth]int{
	pb.EndpointHealthHealthy: 0, pb.EndpointHealthReady: 1, pb.EndpointHealthUnhealthy: 2, pb.EndpointHealthDraining: 3, pb.EndpointHealthTerminating: 4,
}

// newEndpoint is an endpoint of a registry and a trust domain with the labels that istiod adds from
// where it is.
func newEndpoint(e *pb.Endpoint, registry, domain string) endpoint {
	v := endpoint{
		Labels: map[string]string{}, ServicePortName: e.PortName, ServiceAccount: e.ServiceAccount,
		Network: e.Network, EndpointPort: e.Port, LbWeight: e.Weight,
		TLSMode: cmp.Or(e.TlsMode, "disabled"), Namespace: cmp.Or(e.WorkloadNamespace, e.Namespace),
		WorkloadName: e.Workload, HostName: e.Hostname, SubDomain: e.Subdomain,
		HealthStatus: healths[e.Health], NodeName: e.Node,
	}
	if a := e.ServiceAccount; a != "" && !strings.HasPrefix(a, istio.Scheme) {
		v.ServiceAccount = istio.Scheme + domain + "/ns/" + v.Namespace + "/sa/" + a
	}
	if e.Address != "" {
		v.Addresses = append([]string{e.Address}, e.MoreAddresses...)
	}
	v.Locality.Label, v.Locality.ClusterID = e.Locality, e.Cluster
	if n := strings.Count(e.Locality, "/"); registry == kubernetes && e.Locality != "" && n < 2 {
		v.Locality.Label += strings.Repeat("/", 2-n) // istiod writes empty parts
	}
	for key, value := range e.Labels {
		v.Labels[key] = value
	}
	places := strings.SplitN(e.Locality+"//", "/", 3)
	for key, value := range map[string]string{
		"topology.istio.io/cluster": e.Cluster, "topology.istio.io/network": e.Network, "kubernetes.io/hostname": e.Node,
		"topology.kubernetes.io/region": places[0], "topology.kubernetes.io/zone": places[1], "topology.istio.io/subzone": strings.Trim(places[2], "/"),
	} {
		if value != "" {
			v.Labels[key] = value
		}
	}
	return v
}

// endpointShardz shows endpoints by host, namespace, and REGISTRY/CLUSTER.
func (s *source) endpointShardz(w http.ResponseWriter, _ *http.Request) {
	m := &api.MeshConfig{}
	s.settings(state.Mesh, m)
	domain := istio.TrustDomains(m.TrustDomain, nil)[0]
	registries := map[of]string{}
	s.services(func(_ *pb.Row, v *pb.Service) { registries[of{v.Namespace, v.Host}] = v.Registry })
	all := map[string]map[string]shards{}
	for _, e := range s.endpoints() {
		if all[e.Host] == nil {
			all[e.Host] = map[string]shards{}
		}
		at, ok := all[e.Host][e.Namespace]
		if !ok {
			at = shards{map[string][]endpoint{}, map[string]struct{}{}}
			all[e.Host][e.Namespace] = at
		}
		registry := registries[of{e.Namespace, e.Host}]
		name := registry + "/" + e.Cluster
		v := newEndpoint(e, registry, domain)
		at.Shards[name] = append(at.Shards[name], v)
		if v.ServiceAccount != "" {
			at.ServiceAccounts[v.ServiceAccount] = struct{}{}
		}
	}
	write(w, all)
}

type (
	target struct {
		Service service
		Port    targetPort
	}
	targetPort struct {
		port
		TargetPort uint32
	}
)

// instancesz shows of each proxy the services that have an endpoint at one of its addresses.
func (s *source) instancesz(w http.ResponseWriter, _ *http.Request) {
	known := map[of]service{}
	s.services(func(r *pb.Row, v *pb.Service) { known[of{v.Namespace, v.Host}] = newService(r, v) })
	endpoints := s.endpoints()
	all := map[string][]target{}
	for _, p := range s.proxies() {
		if p.id == (istio.NodeID{}) {
			continue
		}
		own := []target{}
		for _, e := range endpoints {
			v, ok := known[of{e.Namespace, e.Host}]
			i := slices.IndexFunc(v.Ports, func(p port) bool { return p.Number == e.ServicePort || e.ServicePort == 0 && p.Name == e.PortName })
			if ok && i >= 0 && slices.Contains(p.addresses(), e.Address) {
				own = append(own, target{v, targetPort{v.Ports[i], e.Port}})
			}
		}
		slices.SortStableFunc(own, func(a, b target) int {
			return cmp.Or(a.Service.Created.Compare(b.Service.Created), cmp.Compare(a.Service.Host, b.Service.Host))
		})
		all[p.name] = own
	}
	write(w, all)
}
