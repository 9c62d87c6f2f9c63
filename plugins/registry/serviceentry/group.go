package serviceentry

import (
	"maps"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// trafficDistribution is the annotation that keeps traffic near.
const trafficDistribution = "networking.istio.io/traffic-distribution"

// member is an entry of a group, with the workloads that it selects in order of their names.
type member struct {
	*entry
	workloads []*workload
}

// rowName names one of the plugin's own rows.
type rowName = state.Name

// groupRows returns the rows of one host in one namespace: its service and endpoints. Members are
// the entries that declare the host, oldest first; there is at least one.
func groupRows(host, cluster string, members []member) map[rowName]*sdk.Row {
	service := sdk.ServiceRow(groupService(host, members))
	rows := map[rowName]*sdk.Row{{Table: state.Services, Key: service.Key}: from(members[0].row, service)}
	endpoints, origins := groupEndpoints(host, cluster, members)
	for i, r := range sdk.EndpointRows(endpoints...) {
		rows[rowName{Table: state.Endpoints, Key: r.Key}] = from(origins[i], r)
	}
	return rows
}

// from says which row another was made from.
func from(origin, row *sdk.Row) *sdk.Row {
	row.Created, row.Undated, row.Source = origin.Created, origin.Undated, origin.Source
	return row
}

// groupService is the oldest entry's service. Younger entries that say the same of it but for ports
// and addresses add theirs; others don't count.
func groupService(host string, members []member) *pb.Service {
	service := members[0].service(host)
	for _, m := range members[1:] {
		if alike(members[0].entry, m.entry) {
			addTo(service, m.entry)
		}
	}
	return service
}

func (e *entry) service(host string) *pb.Service {
	return &pb.Service{
		Host: host, Namespace: e.namespace, Name: host,
		Addresses:           unique(e.addresses),
		AutoAddresses:       e.allocated(host),
		Ports:               slices.Clone(e.ports),
		Resolution:          resolution(e.spec.Resolution),
		External:            e.spec.Location == networking.ServiceEntry_MESH_EXTERNAL,
		ExportTo:            e.spec.ExportTo,
		SubjectAltNames:     e.spec.SubjectAltNames,
		Labels:              e.row.Labels,
		Registry:            "External",
		TrafficDistribution: e.row.Annotations[trafficDistribution],
		Selector:            e.selector,
		OriginTable:         kinds.ServiceEntry, OriginKey: e.key,
	}
}

func alike(a, b *entry) bool {
	return a.spec.Resolution == b.spec.Resolution && maps.Equal(a.row.Labels, b.row.Labels) &&
		maps.Equal(a.selector, b.selector) && slices.Equal(a.spec.ExportTo, b.spec.ExportTo)
}

func addTo(s *pb.Service, e *entry) {
	for _, p := range e.ports {
		if !slices.ContainsFunc(s.Ports, func(have *pb.Port) bool { return have.Number == p.Number }) {
			s.Ports = append(s.Ports, p)
		}
	}
	s.Addresses = unique(append(s.Addresses, e.addresses...))
}

func resolution(r networking.ServiceEntry_Resolution) pb.ServiceResolution {
	switch r {
	case networking.ServiceEntry_STATIC:
		return pb.ServiceResolutionStatic
	case networking.ServiceEntry_DNS:
		return pb.ServiceResolutionDns
	case networking.ServiceEntry_DNS_ROUND_ROBIN:
		return pb.ServiceResolutionDnsRoundRobin
	case networking.ServiceEntry_DYNAMIC_DNS:
		return pb.ServiceResolutionDynamicDns
	default:
		return pb.ServiceResolutionNone
	}
}
