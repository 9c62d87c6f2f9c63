package dns

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/dialing"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/nametable"
	"github.com/coxswain-mesh/coxswain/plugins/internal/visibility"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// builder makes names of rows. It remembers what it has read while rows stay as they are.
type builder struct {
	config    *Config
	services  map[string]read[*pb.Service]
	endpoints map[string]read[*pb.Endpoint]
	workloads map[string]read[*pb.Workload]
}

// read is what a row was read as; nil where it can't be.
type read[T any] struct {
	row   *pb.Row
	value T
}

// message is one of the contract.
type message[T any] interface {
	*T
	Unmarshal([]byte) error
}

// again reads the rows of a table that have changed, and forgets those that are gone.
func again[T any, M message[T]](had map[string]read[M], t *state.Table) map[string]read[M] {
	out := make(map[string]read[M], t.Len())
	for key, row := range t.All() {
		if is := had[key]; is.row == row {
			out[key] = is
			continue
		}
		m := M(new(T))
		if m.Unmarshal(row.Payload) != nil {
			m = nil
		}
		out[key] = read[M]{row, m}
	}
	return out
}

// build makes the names of a state.
func (b *builder) build(s *state.State) *names {
	c := b.config
	b.endpoints = again(b.endpoints, s.Table(state.Endpoints))
	b.workloads = again(b.workloads, s.Table(state.Workloads))
	b.services = b.merge(s)
	domain := "." + strings.ToLower(strings.Trim(c.Domain, "."))
	n := &names{known: map[string][]meaning{}, short: map[string][]meaning{}, namespaces: b.clients(), cluster: ".svc" + domain}
	n.search = []string{n.cluster, domain}
	for _, d := range c.Search {
		n.search = append(n.search, "."+strings.ToLower(strings.Trim(d, ".")))
	}
	named := b.byService()
	client := nametable.Client{Dialing: dialing.Dialing{Families: c.families, Resolver: "dns", Cluster: c.Cluster}, Network: c.Network}
	seen := exports(s)
	for _, key := range slices.Sorted(maps.Keys(b.services)) {
		service := b.services[key].value
		if service == nil {
			continue
		}
		to := seen(service)
		if len(to) == 0 {
			continue
		}
		for _, e := range nametable.Of(service, client, func() []nametable.Endpoint { return named[key] }) {
			n.add(e, to)
		}
	}
	return n
}

// add notes a name, and the shorter forms that it has.
func (n *names) add(e nametable.Entry, to []string) {
	m := meaning{seen: to, entry: e}
	if m.four, m.six = split(e.IPs); len(m.four)+len(m.six) == 0 {
		return
	}
	host := strings.ToLower(strings.TrimSuffix(e.Host, "."))
	n.known[host] = append(n.known[host], m)
	if e.Short != "" {
		short := strings.ToLower(e.Short + "." + e.Namespace)
		n.short[short] = append(n.short[short], m)
	}
}

// merge reads the services, each with what it is in other clusters.
func (b *builder) merge(s *state.State) map[string]read[*pb.Service] {
	others := map[string][]*pb.Row{}
	there := s.Table(state.ClusterServices)
	for _, key := range there.Keys() {
		service := key[:max(0, strings.LastIndexByte(key, '/'))]
		others[service] = append(others[service], there.Get(key))
	}
	out := again(b.services, s.Table(state.Services))
	for service, rows := range others {
		row := s.Table(state.Services).Get(service)
		all, err := dialing.Merged(row, rows)
		if row == nil || err != nil {
			continue
		}
		m := &pb.Service{}
		if m.Unmarshal(all.Payload) == nil {
			out[service] = read[*pb.Service]{value: m} // without its row: it is read again
		}
	}
	return out
}

// byService are the endpoints of services that may be asked for them.
func (b *builder) byService() map[string][]nametable.Endpoint {
	out := map[string][]nametable.Endpoint{}
	for key, r := range b.endpoints {
		e := r.value
		if e == nil {
			continue
		}
		service := e.Namespace + "/" + e.Host
		if s := b.services[service].value; s != nil && (s.Headless || s.Resolution == pb.ServiceResolutionNone) {
			out[service] = append(out[service], nametable.Endpoint{Endpoint: e, Key: key})
		}
	}
	return out
}

// clients are the namespaces of workloads, by address; "" where several have one, as pods have that
// use their node's. What somebody declares to have a pod's address does not count.
func (b *builder) clients() map[netip.Addr]string {
	out, pods := map[netip.Addr]string{}, map[netip.Addr]bool{}
	for _, arePods := range []bool{true, false} {
		for _, r := range b.workloads {
			if r.value == nil || (r.value.Node != "") != arePods {
				continue
			}
			for _, text := range r.value.Addresses {
				ip, err := netip.ParseAddr(text)
				if ip = ip.Unmap(); err != nil || ip.IsLoopback() || !arePods && pods[ip] {
					continue
				}
				namespace := r.value.Namespace
				if had, ok := out[ip]; ok && had != namespace {
					namespace = ""
				}
				out[ip], pods[ip] = namespace, arePods
			}
		}
	}
	return out
}

// exports says who sees a service.
func exports(s *state.State) func(*pb.Service) []string {
	mesh, err := kinds.Mesh(s)
	if err != nil {
		mesh = &meshv1.MeshConfig{}
	}
	return func(service *pb.Service) []string {
		list := istio.Export(service.ExportTo, mesh.GetDefaultServiceExportTo(), service.Namespace)
		if service.Registry != dialing.External {
			return list
		}
		most := visibility.Of(mesh.GetServiceEntryVisibility(), func() map[string]string {
			is := &pb.Namespace{}
			if row := s.Row(state.Namespaces, service.Namespace); row != nil && is.Unmarshal(row.Payload) == nil {
				return is.Labels
			}
			return nil
		})
		return visibility.Narrow(list, most, service.Namespace)
	}
}
