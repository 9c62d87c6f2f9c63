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

// builder makes names of rows. It remembers what it has read, and what each service has named: what
// it does for a new state follows from what has changed since the last one.
type builder struct {
	config *Config
	last   *state.State
	names  *names
	// services are those that can be read, by the key of their rows, each with what it is in other
	// clusters; others are the rows that say the latter.
	services map[string]*pb.Service
	others   map[string]map[string]*pb.Row
	// endpoints are by service, then by key.
	endpoints map[string]map[string]*pb.Endpoint
	belongs   map[string]string
	// clients are workloads by address, then by key; at are the addresses of each.
	clients map[netip.Addr]map[string]client
	at      map[string][]netip.Addr
	// named are the names that each service has, in known and in short.
	named map[string]hosts
}

// client is a workload at an address.
type client struct {
	namespace string
	pod       bool
}

// hosts are keys of names.
type hosts struct{ known, short map[string]bool }

// message is one of the contract.
type message[T any] interface {
	*T
	Unmarshal([]byte) error
}

// decoded reads a row; nil where there is none, or it can't be read.
func decoded[T any, M message[T]](row *pb.Row) M {
	m := M(new(T))
	if row == nil || m.Unmarshal(row.Payload) != nil {
		return nil
	}
	return m
}

// table is that of the state before; nil: there was none.
func (b *builder) table(name string) *state.Table {
	if b.last == nil {
		return nil
	}
	return b.last.Table(name)
}

// build has the names be those of a state, and returns them: the same each time.
func (b *builder) build(s *state.State) *names {
	if b.names == nil {
		b.begin()
	}
	due := map[string]bool{}
	for key := range s.Table(state.Services).Changed(b.table(state.Services)) {
		due[key] = true
	}
	b.readOthers(s, due)
	b.readEndpoints(s, due)
	b.readNamespaces(s, due)
	addresses := b.readWorkloads(s)
	seen, changes := exports(s), map[string][]meaning{}
	for key := range due {
		b.readService(s, key)
		changes[key] = b.meanings(key, seen)
	}
	b.last = s
	b.names.mu.Lock()
	defer b.names.mu.Unlock()
	for key, all := range changes {
		b.put(key, all)
	}
	for ip := range addresses {
		if of := b.clients[ip]; len(of) == 0 {
			delete(b.names.namespaces, ip)
		} else {
			b.names.namespaces[ip] = namespaceOf(of)
		}
	}
	return b.names
}

// begin makes what there is before anything was read.
func (b *builder) begin() {
	c := b.config
	domain := "." + strings.ToLower(strings.Trim(c.Domain, "."))
	n := &names{known: map[string][]meaning{}, short: map[string][]meaning{}, namespaces: map[netip.Addr]string{}, cluster: ".svc" + domain}
	n.search = []string{n.cluster, domain}
	for _, d := range c.Search {
		n.search = append(n.search, "."+strings.ToLower(strings.Trim(d, ".")))
	}
	b.names = n
	b.services, b.others = map[string]*pb.Service{}, map[string]map[string]*pb.Row{}
	b.endpoints, b.belongs = map[string]map[string]*pb.Endpoint{}, map[string]string{}
	b.clients, b.at = map[netip.Addr]map[string]client{}, map[string][]netip.Addr{}
	b.named = map[string]hosts{}
}

// readOthers reads what services are in other clusters.
func (b *builder) readOthers(s *state.State, due map[string]bool) {
	for key, row := range s.Table(state.ClusterServices).Changed(b.table(state.ClusterServices)) {
		service := key[:max(0, strings.LastIndexByte(key, '/'))]
		due[service] = true
		put(b.others, service, key, row, row != nil)
	}
}

// put puts a value into a map of maps, or takes it out.
func put[K comparable, V any](into map[K]map[string]V, at K, key string, value V, there bool) {
	if there {
		if into[at] == nil {
			into[at] = map[string]V{}
		}
		into[at][key] = value
		return
	}
	if delete(into[at], key); len(into[at]) == 0 {
		delete(into, at)
	}
}

// readEndpoints reads endpoints. Services that may be asked for them have other names then.
func (b *builder) readEndpoints(s *state.State, due map[string]bool) {
	for key, row := range s.Table(state.Endpoints).Changed(b.table(state.Endpoints)) {
		if was, ok := b.belongs[key]; ok {
			put(b.endpoints, was, key, nil, false)
			delete(b.belongs, key)
			due[was] = due[was] || asked(b.services[was])
		}
		e := decoded[pb.Endpoint](row)
		if e == nil {
			continue
		}
		service := e.Namespace + "/" + e.Host
		put(b.endpoints, service, key, e, true)
		b.belongs[key] = service
		due[service] = due[service] || asked(b.services[service])
	}
	for key, yes := range due {
		if !yes {
			delete(due, key)
		}
	}
}

// asked reports whether a service is asked for its endpoints.
func asked(s *pb.Service) bool {
	return s != nil && (s.Headless || s.Resolution == pb.ServiceResolutionNone)
}

// readNamespaces finds the services that others may see now: the mesh's settings and labels of
// namespaces say which.
func (b *builder) readNamespaces(s *state.State, due map[string]bool) {
	for range s.Table(state.Mesh).Changed(b.table(state.Mesh)) {
		for key := range b.services {
			due[key] = true
		}
	}
	changed := map[string]bool{}
	for key := range s.Table(state.Namespaces).Changed(b.table(state.Namespaces)) {
		changed[key] = true
	}
	if len(changed) == 0 {
		return
	}
	for key, service := range b.services {
		if service.Registry == dialing.External && changed[service.Namespace] {
			due[key] = true
		}
	}
}

// readWorkloads reads workloads, and returns the addresses whose clients have changed.
func (b *builder) readWorkloads(s *state.State) map[netip.Addr]bool {
	changed := map[netip.Addr]bool{}
	for key, row := range s.Table(state.Workloads).Changed(b.table(state.Workloads)) {
		for _, ip := range b.at[key] {
			put(b.clients, ip, key, client{}, false)
			changed[ip] = true
		}
		delete(b.at, key)
		w := decoded[pb.Workload](row)
		if w == nil {
			continue
		}
		for _, text := range w.Addresses {
			ip, err := netip.ParseAddr(text)
			if ip = ip.Unmap(); err != nil || ip.IsLoopback() {
				continue
			}
			put(b.clients, ip, key, client{w.Namespace, w.Node != ""}, true)
			b.at[key] = append(b.at[key], ip)
			changed[ip] = true
		}
	}
	return changed
}

// namespaceOf is the namespace of clients with one address; "" where they are of several, as pods
// that use their node's are. What somebody declares to have a pod's address does not count.
func namespaceOf(all map[string]client) (namespace string) {
	pods := false
	for _, c := range all {
		pods = pods || c.pod
	}
	first := true
	for _, c := range all {
		switch {
		case c.pod != pods:
		case first:
			namespace, first = c.namespace, false
		case c.namespace != namespace:
			return ""
		}
	}
	return namespace
}

// readService reads a service, with what it is in other clusters.
func (b *builder) readService(s *state.State, key string) {
	row := s.Row(state.Services, key)
	var there []*pb.Row
	for _, k := range slices.Sorted(maps.Keys(b.others[key])) {
		there = append(there, b.others[key][k])
	}
	if row != nil && len(there) > 0 {
		if all, err := dialing.Merged(row, there); err == nil {
			row = all
		}
	}
	if is := decoded[pb.Service](row); is != nil {
		b.services[key] = is
		return
	}
	delete(b.services, key)
}

// meanings are those of the names of a service, and who sees them.
func (b *builder) meanings(key string, seen func(*pb.Service) []string) (all []meaning) {
	service := b.services[key]
	if service == nil {
		return nil
	}
	to := seen(service)
	if len(to) == 0 {
		return nil
	}
	c := b.config
	asks := nametable.Client{Dialing: dialing.Dialing{Families: c.families, Resolver: "dns", Cluster: c.Cluster}, Network: c.Network}
	for _, e := range nametable.Of(service, asks, func() (list []nametable.Endpoint) {
		for k, e := range b.endpoints[key] {
			list = append(list, nametable.Endpoint{Endpoint: e, Key: k})
		}
		return list
	}) {
		m := meaning{of: key, seen: to, entry: e}
		if m.four, m.six = split(e.IPs); len(m.four)+len(m.six) > 0 {
			all = append(all, m)
		}
	}
	return all
}

// put has a service have these names, and the shorter forms that they have, and no others.
func (b *builder) put(key string, all []meaning) {
	was := b.named[key]
	for host := range was.known {
		without(b.names.known, host, key)
	}
	for host := range was.short {
		without(b.names.short, host, key)
	}
	delete(b.named, key)
	if len(all) == 0 {
		return
	}
	now := hosts{map[string]bool{}, map[string]bool{}}
	for _, m := range all {
		host := strings.ToLower(strings.TrimSuffix(m.entry.Host, "."))
		with(b.names.known, host, m)
		now.known[host] = true
		if m.entry.Short != "" {
			short := strings.ToLower(m.entry.Short + "." + m.entry.Namespace)
			with(b.names.short, short, m)
			now.short[short] = true
		}
	}
	b.named[key] = now
}

// with adds a meaning to a name, in the order of services; who has read the list keeps it as it is.
func with(names map[string][]meaning, host string, m meaning) {
	had := names[host]
	at := len(had)
	for at > 0 && had[at-1].of > m.of {
		at--
	}
	names[host] = slices.Concat(had[:at], []meaning{m}, had[at:])
}

// without takes the meanings of a service from a name.
func without(names map[string][]meaning, host, key string) {
	var rest []meaning
	for _, m := range names[host] {
		if m.of != key {
			rest = append(rest, m)
		}
	}
	if names[host] = rest; len(rest) == 0 {
		delete(names, host)
	}
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
