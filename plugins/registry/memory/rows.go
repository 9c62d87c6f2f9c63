package memory

import (
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// rows makes the rows of tables services and endpoints.
func rows(c Config) (services, endpoints []*sdk.Row) {
	for _, s := range c.Services {
		services = append(services, sdk.ServiceRow(s.row()))
		endpoints = append(endpoints, sdk.EndpointRows(s.endpoints(c.Cluster)...)...)
	}
	return services, endpoints
}

func (s *service) row() *pb.Service {
	out := &pb.Service{
		Host: s.Host, Namespace: s.Namespace, Name: s.Name, Addresses: s.Addresses, Resolution: resolutions[s.Resolution],
		External: s.External, ExportTo: s.ExportTo, SubjectAltNames: s.SubjectAltNames, Labels: s.Labels, Registry: "Memory",
	}
	for _, p := range s.Ports {
		port := &pb.Port{Number: p.Number, Name: p.Name, Protocol: p.Protocol}
		if p.TargetPort != p.Number {
			port.Target = p.TargetPort
		}
		out.Ports = append(out.Ports, port)
	}
	return out
}

func (s *service) endpoints(cluster string) (out []*pb.Endpoint) {
	members := s.Endpoints
	if len(members) == 0 && strings.HasPrefix(s.Resolution, "DNS") && !strings.HasPrefix(s.Host, "*") {
		members = []endpoint{{Address: s.Host, Workload: s.Name}}
	}
	for i, e := range members {
		for _, p := range s.Ports {
			row := &pb.Endpoint{
				Host: s.Host, Namespace: s.Namespace, PortName: p.Name, ServicePort: p.Number,
				Address: e.Address, Port: e.at(p), Labels: e.Labels,
				Network:  hosts.Network(e.Network, e.Labels),
				Locality: hosts.Locality(e.Locality, e.Labels),
				Weight:   e.Weight, ServiceAccount: e.ServiceAccount, TlsMode: hosts.TLSMode(e.Labels, e.ServiceAccount),
				Cluster: cluster, Workload: or(e.Workload, s.Name+"-"+strconv.Itoa(i)), Index: uint32(i),
			}
			if path, ok := hosts.Path(e.Address); ok {
				row.Address, row.Port = hosts.Unix+path, 0
			}
			out = append(out, row)
		}
	}
	return out
}

// at is where the endpoint serves a port.
func (e *endpoint) at(p port) uint32 {
	for _, n := range []uint32{e.Ports[p.Name], e.Port, p.TargetPort} {
		if n > 0 {
			return n
		}
	}
	return p.Number
}
