package kubernetes

import (
	"cmp"
	"context"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/mcs"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

type registry struct {
	config Config
	client *kube.Client
}

// unit is what is published together: what becomes of a Service, a Pod or a Namespace.
type unit struct{ table, key string }

// Run publishes what the API server has, and follows it until ctx ends. A server that is away
// changes nothing.
func (r *registry) Run(ctx context.Context, out sdk.Publisher) error {
	p := newPublication(&r.config, out)
	r.config.Access.Report(ctx, out)
	var said kube.LogLimiter
	client := r.reach(ctx, out)
	if client == nil {
		return nil
	}
	failed := func(kind string, err error) {
		if said.Allow(kind, err, time.Now()) {
			out.Log(sdk.Warn,
				"what the API server has of a kind can't be watched; what is known stays, and it is tried again",
				"kind", kind, "error", err.Error())
		}
	}
	var err error
	if p.watched, err = watch(client, r.config.Remote != "" && r.config.WorkloadEntries.Read, p.changed, failed); err != nil {
		return err
	}
	p.exports = newExports(&r.config.MultiCluster)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { p.watched.run(ctx) })
	if p.exports != nil {
		running.Go(func() { p.exports.run(ctx, client, p.dirt.Add, failed) })
	}
	var newer <-chan struct{}
	if r.config.DiscoverySelectors {
		first, next, err := kube.FirstState(ctx, out)
		if err != nil {
			return nil
		}
		newer = next
		p.choose(first)
	}
	if !p.wait(ctx) {
		return nil
	}
	return p.follow(ctx, out, newer)
}

// follow publishes what there is, and each change, until ctx ends. newer is told when namespaces
// are to be chosen anew; nil: all are.
func (p *publication) follow(ctx context.Context, out sdk.Publisher, newer <-chan struct{}) error {
	for synced := false; ; {
		if err := p.publish(p.dirt.Drain()); err != nil {
			return err
		}
		if !synced {
			synced = true
			if err := out.Synced(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-newer:
			var next *state.State
			next, newer = out.State()
			p.choose(next)
		case <-p.dirt.Some():
		}
	}
}

// publication is what was published of a cluster.
type publication struct {
	config  *Config
	out     sdk.Publisher
	watched *watched
	// exports are those of Multi-Cluster Services; nil: they don't count.
	exports *exports
	dirt    *kube.Changes[unit]
	// published are the rows of each unit.
	published map[unit][]published
	// entries are the WorkloadEntries that count, by namespace.
	entries map[string]entriesIn
	// standing says of which services the endpoints stay as they were.
	standing standing
	// selection says which namespaces count; outside are those that are known not to.
	selection kube.Selection
	outside   map[string]bool
	// network is that of the cluster, as the label of its system namespace says; empty: it doesn't.
	network string
}

func newPublication(c *Config, out sdk.Publisher) *publication {
	return &publication{
		config: c, out: out, dirt: kube.NewChanges[unit](),
		published: map[unit][]published{}, outside: map[string]bool{}, entries: map[string]entriesIn{}, standing: standing{},
	}
}

// choose takes the discovery selectors of the mesh's settings.
func (p *publication) choose(s *state.State) {
	selection, err := kube.SelectionOf(s)
	if err != nil {
		p.out.Log(sdk.Warn, "the mesh's discovery selectors can't be used; those from before count", "error", err.Error())
		return
	}
	if selection.Same(p.selection) {
		return
	}
	p.selection = selection
	clear(p.outside)
	p.dirt.Add(p.within(func(string) bool { return true })...)
}

// within are the units in namespaces.
func (p *publication) within(concerns func(namespace string) bool) (out []unit) {
	for _, o := range p.watched.services.GetStore().List() {
		if s, ok := o.(*corev1.Service); ok && concerns(s.Namespace) {
			out = append(out, p.aliased(s)...)
		}
	}
	for _, o := range p.watched.pods.GetStore().List() {
		if of, ok := o.(*pod); ok && concerns(of.Namespace) {
			out = append(out, unit{state.Workloads, of.Namespace + "/" + of.Name})
		}
	}
	if i := p.watched.gateways.informer(); i != nil {
		for _, g := range all[gateway](i) {
			if concerns(g.Namespace) {
				out = append(out, unit{state.NetworkGateways, g.Namespace + "/" + g.Name})
			}
		}
	}
	if w := p.watched.entries; w != nil && w.informer() != nil {
		for _, e := range all[entry](w.informer()) {
			if concerns(e.Namespace) {
				out = append(out, unit{kinds.WorkloadEntry, e.Namespace + "/" + e.Name})
			}
		}
	}
	return out
}

// counts reports whether the objects of a namespace do, and notes if they don't.
func (p *publication) counts(namespace string) bool {
	if p.selection.All() {
		return true
	}
	n := get[corev1.Namespace](p.watched.namespaces, namespace)
	is := n != nil && p.selection.Has(n.Labels)
	if !is {
		p.outside[namespace] = true
	}
	return is
}

// cross adds to units those in namespaces that count now and did not, or the other way round; all,
// where the cluster's network is another one.
func (p *publication) cross(units map[unit]bool) {
	crossed := map[string]bool{}
	if now := p.networkNow(); now != p.network {
		p.network = now
		for _, u := range p.within(func(string) bool { return true }) {
			units[u] = true
		}
	}
	for u := range units {
		if u.table != state.Namespaces {
			continue
		}
		was := p.outside[u.key]
		is := !p.counts(u.key)
		if was != is {
			crossed[u.key] = true
		}
		if was && !is || get[corev1.Namespace](p.watched.namespaces, u.key) == nil { // whose objects are still there is noted again with them
			delete(p.outside, u.key)
		}
	}
	if len(crossed) == 0 {
		return
	}
	for _, u := range p.within(func(namespace string) bool { return crossed[namespace] }) {
		units[u] = true
	}
}

// networkNow is the network that the label of the system namespace says now.
func (p *publication) networkNow() string {
	if n := get[corev1.Namespace](p.watched.namespaces, p.config.SystemNamespace); n != nil {
		return n.Labels[hosts.NetworkLabel]
	}
	return ""
}

// wait waits for the first lists, and says now and then which are missing.
func (p *publication) wait(ctx context.Context) bool {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for told := time.Now(); ; {
		late := append(p.watched.late(), p.exports.late()...)
		if len(late) == 0 {
			return true
		}
		if now := time.Now(); now.Sub(told) > patience {
			told = now
			p.out.Log(sdk.Warn, "first lists are not in: is the API server there, and may this account list and watch them?", "kinds", strings.Join(late, ", "))
		}
		select {
		case <-ctx.Done():
			return false
		case <-look.C:
		}
	}
}

// changed notes which rows an object may change.
func (p *publication) changed(object any) {
	if p.watched == nil {
		return
	}
	switch o := object.(type) {
	case *corev1.Service:
		p.dirt.Add(p.aliased(o)...)
	case *discoveryv1.EndpointSlice:
		p.dirt.Add(services(serviceOf(o))...)
	case *pod:
		key := o.Namespace + "/" + o.Name
		p.dirt.Add(append(p.of(byPod, key), unit{state.Workloads, key})...)
	case *entry:
		p.dirt.Add(unit{kinds.WorkloadEntry, o.Namespace + "/" + o.Name})
	case *gateway:
		p.dirt.Add(unit{state.NetworkGateways, o.Namespace + "/" + o.Name})
	case *corev1.Node:
		units := p.of(byNode, o.Name)
		for _, of := range found[*pod](p.watched.pods, byNode, o.Name) {
			key := of.Namespace + "/" + of.Name
			units = append(append(units, p.of(byPod, key)...), unit{state.Workloads, key})
		}
		for _, s := range found[*corev1.Service](p.watched.services, byNodeSelector, selected) {
			units = append(units, unit{state.Services, s.Namespace + "/" + s.Name})
		}
		p.dirt.Add(units...)
	case *corev1.Namespace:
		units := []unit{{state.Namespaces, o.Name}}
		for _, s := range p.watched.services.GetStore().List() {
			if s, ok := s.(*corev1.Service); ok && s.Namespace == o.Name {
				units = append(units, unit{state.Services, s.Namespace + "/" + s.Name})
			}
		}
		p.dirt.Add(units...)
	}
}

func services(keys []string) (out []unit) {
	for _, k := range keys {
		out = append(out, unit{state.Services, k})
	}
	return out
}

// of are the services whose slices an index has under a key.
func (p *publication) of(index, key string) (out []unit) {
	for _, s := range found[*discoveryv1.EndpointSlice](p.watched.slices, index, key) {
		out = append(out, services(serviceOf(s))...)
	}
	return out
}

// maxHops bounds how many ExternalName services may stand for each other.
const maxHops = 10

// aliased are a service, and what it stands for, by way of others too.
func (p *publication) aliased(s *corev1.Service) []unit {
	out := []unit{{state.Services, s.Namespace + "/" + s.Name}}
	for hops := 0; s != nil && hops < maxHops && len(target(s)) > 0; hops++ {
		name, ok := p.config.serviceAt(target(s)[0])
		if !ok {
			break
		}
		out, s = append(out, unit{state.Services, name}), get[corev1.Service](p.watched.services, name)
	}
	return out
}

// aliases are the ExternalName services that stand for a host, or for one that does, in namespaces
// that count.
func (p *publication) aliases(host string, hops int) (out []string) {
	for _, s := range found[*corev1.Service](p.watched.services, byTarget, host) {
		if !p.counts(s.Namespace) {
			continue
		}
		name := p.config.hostOf(s.Namespace, s.Name)
		if out = append(out, name); hops > 1 {
			out = append(out, p.aliases(name, hops-1)...)
		}
	}
	return out
}

// aliasesOf are all aliases of a host, sorted.
func (p *publication) aliasesOf(host string) []string {
	out := p.aliases(host, maxHops)
	slices.Sort(out)
	return out
}

// serviceAt is NAMESPACE/NAME of the service whose full name a host is.
func (c *Config) serviceAt(host string) (key string, ok bool) {
	short, ok := strings.CutSuffix(strings.TrimSuffix(host, "."), ".svc."+c.Domain)
	name, namespace, both := strings.Cut(short, ".")
	return namespace + "/" + name, ok && both
}

// published is what is kept of a row that was: its table, its key, and a sum of its payload.
type published struct {
	rowName
	sum uint64
}

type rowName struct{ table, key string }

var seed = maphash.MakeSeed()

// publish makes the rows of units anew and publishes what differs: first services, then what refers
// to them.
func (p *publication) publish(units map[unit]bool) error {
	upserts, deletes := map[string][]*sdk.Row{}, map[string][]string{}
	p.cross(units)
	p.readEntries(units)
	for u := range units {
		before := map[rowName]uint64{}
		for _, is := range p.published[u] {
			before[is.rowName] = is.sum
		}
		var now []published
		rows, keeps := p.rows(u)
		for table, rows := range rows {
			for _, row := range rows {
				is := published{rowName{table, row.Key}, maphash.Bytes(seed, row.Payload)}
				if old, was := before[is.rowName]; !was || old != is.sum {
					upserts[table] = append(upserts[table], row)
				}
				delete(before, is.rowName)
				now = append(now, is)
			}
		}
		for gone := range before {
			if keeps && gone.table == state.Endpoints {
				now = append(now, published{gone, before[gone]})
				continue
			}
			deletes[gone.table] = append(deletes[gone.table], gone.key)
		}
		if len(now) == 0 {
			delete(p.published, u)
		} else {
			p.published[u] = slices.Clip(now)
		}
	}
	for _, table := range tables {
		if len(upserts[table])+len(deletes[table]) == 0 {
			continue
		}
		if err := p.out.Update(table, upserts[table], deletes[table]); err != nil {
			return err
		}
	}
	return nil
}

// tables in the order in which they are published.
var tables = []string{
	mcs.Exports, mcs.Imports, state.Namespaces, state.Services, state.ClusterServices, state.Endpoints,
	state.Workloads, state.NetworkGateways,
}

// rows makes the rows of a unit; none: there is no such thing, or its namespace doesn't count. The
// endpoints of one that keeps them are those that were published before.
func (p *publication) rows(u unit) (rows map[string]map[string]*sdk.Row, keeps bool) {
	if u.table != state.Services {
		return p.single(u), false
	}
	if s := get[corev1.Service](p.watched.services, u.key); s != nil && s.Spec.Type != corev1.ServiceTypeExternalName && p.counts(s.Namespace) {
		return p.service(u, s)
	}
	delete(p.standing, u)
	namespace, name, _ := strings.Cut(u.key, "/")
	host := p.config.hostOf(namespace, name)
	return p.config.named(namespace, host, p.aliasesOf(host)), false
}

// single makes the rows of a unit that is no service.
func (p *publication) single(u unit) map[string]map[string]*sdk.Row {
	switch u.table {
	case state.Namespaces:
		if n := get[corev1.Namespace](p.watched.namespaces, u.key); n != nil {
			return one(u.table, sdk.NamespaceRow(&pb.Namespace{Name: n.Name, Labels: n.Labels, Annotations: n.Annotations}))
		}
	case mcs.Exports, mcs.Imports:
		return p.exports.row(p.config, u)
	case state.Workloads:
		if of := get[pod](p.watched.pods, u.key); of != nil && p.counts(of.Namespace) {
			if w := p.config.workload(of, p.node(of.node)); w != nil {
				w.Network = cmp.Or(w.Network, p.network)
				row := sdk.WorkloadRow(w)
				row.Key += p.config.suffix("@")
				return one(u.table, row)
			}
		}
	case kinds.WorkloadEntry:
		return p.entryRow(u.key)
	case state.NetworkGateways:
		if i := p.watched.gateways.informer(); i != nil {
			if g := get[gateway](i, u.key); g != nil && p.counts(g.Namespace) {
				return p.config.entranceRows(g)
			}
		}
	}
	return nil
}

func one(table string, row *sdk.Row) map[string]map[string]*sdk.Row {
	return map[string]map[string]*sdk.Row{table: {row.Key: row}}
}

func (p *publication) node(name string) *corev1.Node {
	if name == "" {
		return nil
	}
	return get[corev1.Node](p.watched.nodes, name)
}

func (p *publication) service(u unit, s *corev1.Service) (rows map[string]map[string]*sdk.Row, keeps bool) {
	aliases := p.aliasesOf(p.config.hostOf(s.Namespace, s.Name))
	is := p.config.service(s, get[corev1.Namespace](p.watched.namespaces, s.Namespace), aliases)
	if selector, ok := nodeSelector(s); ok {
		p.config.onNodes(is, s, all[corev1.Node](p.watched.nodes), selector)
	}
	row := sdk.ServiceRow(is)
	if !s.CreationTimestamp.IsZero() {
		row.Created = s.CreationTimestamp.UnixNano()
	}
	out := one(state.Services, row)
	if here := p.config.here(is, row.Created); here != nil {
		out[state.ClusterServices] = map[string]*sdk.Row{here.Key: here}
	}
	made, unknown := p.config.endpoints(&members{
		service: s, slices: found[*discoveryv1.EndpointSlice](p.watched.slices, byService, u.key),
		pod:  func(namespace, name string) *pod { return get[pod](p.watched.pods, namespace+"/"+name) },
		node: p.node,
	})
	for _, e := range made {
		e.Network = cmp.Or(e.Network, p.network)
	}
	made = append(made, p.entryEndpoints(is)...)
	for _, e := range made {
		e.SameCluster = p.exports.confined(u.key)
	}
	if p.keeps(u, made, unknown) {
		return maps.Clone(out), true
	}
	endpoints := map[string]*sdk.Row{}
	for _, row := range sdk.EndpointRows(made...) {
		row.Key += p.config.suffix("#")
		endpoints[row.Key] = row
	}
	if len(endpoints) > 0 {
		out[state.Endpoints] = endpoints
	}
	return maps.Clone(out), false
}

// keeps reports whether a service keeps the endpoints that it had, for the time being.
func (p *publication) keeps(u unit, made []*pb.Endpoint, unknown int) bool {
	_, stood := p.standing[u]
	if left := p.standing.judge(u, made, unknown, time.Now()); left > 0 {
		time.AfterFunc(left, func() { p.dirt.Add(u) })
		return true
	}
	if _, stands := p.standing[u]; stood && !stands && unknown > 0 {
		p.out.Log(sdk.Warn,
			"the slices of a service name pods that the API server doesn't show; it has no endpoint any more that takes requests",
			"service", u.key)
	}
	return false
}
