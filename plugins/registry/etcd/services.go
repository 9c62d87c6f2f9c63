package etcd

import (
	"fmt"
	"maps"
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// dispute is what a record says otherwise than an earlier one of its service.
type dispute struct{ key, field, reason string }

// rowsOf makes a service of its records, by key. Where they contradict each other the first key
// counts.
func rowsOf(cluster string, records map[string]*record) (s *sdk.Service, endpoints []*sdk.Endpoint, disputes []dispute) {
	keys := slices.Sorted(maps.Keys(records))
	byNumber, byName, said := map[uint32]*sdk.Port{}, map[string]uint32{}, map[uint32]string{}
	aboutKey := ""
	for _, key := range keys {
		r := records[key]
		if s == nil {
			s = &sdk.Service{Host: r.Host, Namespace: r.Namespace, Name: r.Host, Registry: "Etcd"}
		}
		if r.Service != nil {
			if aboutKey == "" {
				aboutKey = key
				r.Service.apply(s)
			} else if !r.Service.same(records[aboutKey].Service) {
				disputes = append(disputes, dispute{key, "service", fmt.Sprintf("is otherwise than that of %s, which counts", aboutKey)})
			}
		}
		for i, p := range r.Ports {
			known := byNumber[p.Number]
			switch {
			case known == nil:
				if other, taken := byName[p.Name]; taken {
					disputes = append(disputes, dispute{
						key, fmt.Sprintf("ports[%d].name", i),
						fmt.Sprintf("%q is the name of port %d in %s; this port is left out", p.Name, other, said[other]),
					})
					continue
				}
				known = &sdk.Port{Number: p.Number, Name: p.Name, Protocol: p.Protocol}
				byNumber[p.Number], byName[p.Name], said[p.Number] = known, p.Number, key
			case known.Name != p.Name || known.Protocol != p.Protocol:
				disputes = append(disputes, dispute{key, fmt.Sprintf("ports[%d]", i), fmt.Sprintf("port %d is %q, %s; in %s, which counts, it is %q, %s",
					p.Number, p.Name, protocol(p.Protocol), said[p.Number], known.Name, protocol(known.Protocol))})
			}
			endpoints = append(endpoints, r.endpoint(cluster, known, p))
		}
	}
	for _, number := range slices.Sorted(maps.Keys(byNumber)) {
		s.Ports = append(s.Ports, byNumber[number])
	}
	return s, endpoints, disputes
}

func protocol(name string) string {
	if name == "" {
		return "to be sniffed"
	}
	return name
}

func (r *record) endpoint(cluster string, of *sdk.Port, p port) *sdk.Endpoint {
	e := &sdk.Endpoint{
		Host: r.Host, Namespace: r.Namespace, PortName: of.Name, ServicePort: of.Number, Address: r.Address, Port: p.Number, Labels: r.Labels,
		Network: hosts.Network(r.Network, r.Labels), Locality: hosts.Locality(r.Locality, r.Labels), Weight: r.weight(), ServiceAccount: r.ServiceAccount,
		Health: healths[r.Health], TlsMode: hosts.TLSMode(r.Labels, r.ServiceAccount), Cluster: cluster, Workload: r.Workload,
	}
	if p.TargetPort > 0 {
		e.Port = p.TargetPort
	}
	if _, ok := hosts.Path(r.Address); ok {
		e.Port = 0
	}
	return e
}

func (a *about) apply(s *sdk.Service) {
	if a.Name != "" {
		s.Name = a.Name
	}
	s.Addresses, s.ExportTo, s.SubjectAltNames, s.Labels, s.External = a.Addresses, a.ExportTo, a.SubjectAltNames, a.Labels, a.External
}

func (a *about) same(b *about) bool {
	return a.Name == b.Name && a.External == b.External && slices.Equal(a.Addresses, b.Addresses) && slices.Equal(a.ExportTo, b.ExportTo) &&
		slices.Equal(a.SubjectAltNames, b.SubjectAltNames) && maps.Equal(a.Labels, b.Labels)
}
