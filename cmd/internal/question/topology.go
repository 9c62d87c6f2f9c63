package question

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	matcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	udpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/udp/udp_proxy/v3"
	hashing "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/input_matchers/consistent_hashing/v3"
	"google.golang.org/protobuf/proto"

	"github.com/coxswain-mesh/coxswain/cmd/internal/rules"
	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/redact"
)

// Topology is where the routes of all connected proxies lead.
type Topology struct {
	// Revision is the one that was served when it was looked at, some seconds ago at most.
	Revision uint64 `json:"revision"`
	// Proxies is how many nodes are connected. Unread is how many of them were not looked at,
	// because there are too many whose routes differ.
	Proxies int `json:"proxies"`
	Unread  int `json:"unread,omitempty"`
	// Clients are proxies that have the same routes.
	Clients []Client `json:"clients"`
	// Hosts are those of all clients, those first whose routes somebody wrote; All is how many of
	// them fit the question, More how many of these are left out.
	Hosts []MeshHost `json:"hosts"`
	All   int        `json:"all"`
	More  int        `json:"more,omitempty"`
	// Services are the clusters that hosts lead to.
	Services []Service `json:"services"`
}

// Client is proxies that have the same routes.
type Client struct {
	// Type is sidecar or router; empty where a node's id doesn't say.
	Type    string `json:"type,omitempty"`
	Proxies int    `json:"proxies"`
	// Workloads are their names, NAMESPACE/NAME, at most mostNames; More is how many are left out.
	Workloads []string `json:"workloads"`
	More      int      `json:"more,omitempty"`
}

// MeshHost is a host with the same routes for some clients.
type MeshHost struct {
	// Routes, Host and Ways are those of a Host; Routes of a connection is its listener.
	Routes string `json:"routes"`
	Host   string `json:"host"`
	Ways   []Way  `json:"ways"`
	// From are the places in Clients of those that have it, Proxies is how many proxies these are.
	From    []int `json:"from"`
	Proxies int   `json:"proxies"`
}

// Service is a cluster, and who is behind it.
type Service struct {
	Cluster   string `json:"cluster"`
	Endpoints int    `json:"endpoints"`
	// Workloads are those of connected proxies that have its addresses, as a Client has them.
	Workloads []string `json:"workloads,omitempty"`
	More      int      `json:"more,omitempty"`
}

// TopologyPath and TopologyAbout are those of the page.
const (
	TopologyPath  = "/debug/topology"
	TopologyAbout = "[?find=TEXT]: where the routes of all connected proxies lead: hosts, the services that get their requests, and workloads; " +
		"those whose names, rules or workloads contain a text"
)

const (
	// mostClients is how many groups of proxies are looked at: each costs a reading of all that one
	// of its proxies is to have.
	mostClients = 300
	// mostNames is how many workloads are named of each client and service.
	mostNames = 20
	// mostFind is how long the text may be that is looked for.
	mostFind = 300
	// remembered is how long what was read is kept after the last question.
	remembered = time.Minute
	// fresh is how old an answer may be.
	fresh = 5 * time.Second
)

// topologies makes a Topology for each question. What it has read of a body it keeps for as long as
// the body is served: most revisions change no routes.
type topologies struct {
	of admin.Source

	mu    sync.Mutex
	hosts map[*view.Body][]readHost
	// addresses are those of load assignments.
	addresses map[*view.Body]readAssignment
	// last is what the mesh was when somebody asked.
	last *assembly
	// rest forgets all of it when nobody has asked for a while.
	rest *time.Timer
}

// readHost is a Host of a resource; key is the same for those that are the same.
type readHost struct {
	Host
	key string
}

type readAssignment struct {
	cluster   string
	addresses []string
}

// TopologyPage answers where the routes of all connected proxies lead.
func TopologyPage(of admin.Source) admin.Page {
	t := &topologies{of: of}
	return admin.Page{Path: TopologyPath, About: TopologyAbout, Serve: func(w http.ResponseWriter, r *http.Request) {
		find := r.URL.Query().Get("find")
		if len(find) > mostFind {
			http.Error(w, fmt.Sprintf("?find= has %d bytes; it may have %d", len(find), mostFind), http.StatusBadRequest)
			return
		}
		topology, err := t.make(strings.ToLower(find))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		write(w, topology)
	}}
}

// group is the streams of nodes that are served the same routes.
type group struct {
	nodes []string
	Client
}

// fleet is the connected proxies: groups, and the workload of each address.
type fleet struct {
	groups  []*group
	proxies int
	unread  int
	at      map[string]string
}

// assembly is what the mesh was a moment ago. Nothing of it changes.
type assembly struct {
	made     time.Time
	revision uint64
	clients  []Client
	*fleet
	// found are hosts by what they are, behind addresses by cluster.
	found  map[string]*MeshHost
	behind map[string][]string
}

// make answers a question: TEXT in lower case, or nothing.
func (t *topologies) make(find string) (*Topology, error) {
	a, err := t.recent()
	if err != nil {
		return nil, err
	}
	out := &Topology{Revision: a.revision, Proxies: a.proxies, Unread: a.unread, Clients: a.clients, Hosts: []MeshHost{}, Services: []Service{}}
	t.choose(out, a.found, find)
	out.serve(a.behind, a.at)
	return out, nil
}

// recent returns what the mesh was at most fresh ago: however many look, it is put together once in
// a while. Who asks meanwhile waits for it.
func (t *topologies) recent() (*assembly, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last != nil && time.Since(t.last.made) < fresh {
		return t.last, nil
	}
	a, err := t.assemble()
	if err != nil {
		return nil, err
	}
	t.last = a
	if t.rest == nil {
		t.rest = time.AfterFunc(remembered, t.forget)
	}
	t.rest.Reset(remembered)
	return a, nil
}

// assemble puts together what the mesh is now.
func (t *topologies) assemble() (*assembly, error) {
	a := &assembly{made: time.Now(), revision: t.of.Revision().Number, clients: []Client{}, found: map[string]*MeshHost{}, behind: map[string][]string{}}
	a.fleet = t.fleet()
	hosts, addresses := map[*view.Body][]readHost{}, map[*view.Body]readAssignment{}
	for i, g := range a.groups {
		a.clients = append(a.clients, g.Client)
		types, ok := t.of.Dump(g.nodes[0])
		if !ok {
			continue // it has left meanwhile
		}
		seen := map[string]bool{}
		for _, b := range bodiesOf(types, "rds", "lds") {
			if hosts[b] == nil {
				all, err := t.read(b)
				if err != nil {
					return nil, fmt.Errorf("%s of %s: %w", b.Name(), g.nodes[0], err)
				}
				hosts[b] = all
			}
			for _, h := range hosts[b] {
				if is := a.found[h.key]; is == nil {
					a.found[h.key] = &MeshHost{Routes: h.Routes, Host: h.Host.Host, Ways: h.Ways, From: []int{i}, Proxies: g.Proxies}
				} else if !seen[h.key] {
					is.From, is.Proxies = append(is.From, i), is.Proxies+g.Proxies
				}
				seen[h.key] = true
			}
		}
		for _, b := range bodiesOf(types, "eds") {
			if _, known := addresses[b]; !known {
				read, err := t.assignment(b)
				if err != nil {
					return nil, fmt.Errorf("%s of %s: %w", b.Name(), g.nodes[0], err)
				}
				addresses[b] = read
			}
			if is := addresses[b]; a.behind[is.cluster] == nil {
				a.behind[is.cluster] = is.addresses
			}
		}
	}
	t.hosts, t.addresses = hosts, addresses
	return a, nil
}

func (t *topologies) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hosts, t.addresses, t.last = nil, nil, nil
}

// fleet groups nodes by the routes that they get: by view, and the names that they ask for.
func (t *topologies) fleet() *fleet {
	rds := admin.TypeURL("rds")
	views := map[uint64]uint64{}
	for _, s := range t.of.Streams() {
		views[s.Connection] = s.Types[rds].View
	}
	f := &fleet{at: map[string]string{}}
	streams := slices.Clone(t.of.Streamed())
	slices.SortFunc(streams, func(a, b xds.StreamStatus) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(b.Connection, a.Connection)) // a node's newest first
	})
	groups := map[string]*group{}
	for i, s := range streams {
		if i > 0 && streams[i-1].Node == s.Node {
			continue
		}
		f.proxies++
		id, _ := istio.ParseNodeID(s.Node)
		name := workload(s, id)
		if id.Address != "" {
			f.at[id.Address] = name
		}
		key := fmt.Sprint(id.Type, " ", views[s.Connection], " ", strings.Join(s.Names[rds], " "))
		g := groups[key]
		if g == nil {
			if len(f.groups) == mostClients {
				f.unread++
				continue
			}
			g = &group{Client: Client{Type: id.Type, Workloads: []string{}}}
			groups[key] = g
			f.groups = append(f.groups, g)
		}
		g.nodes = append(g.nodes, s.Node)
		g.Proxies++
		if !slices.Contains(g.Workloads, name) {
			g.Workloads = append(g.Workloads, name)
		}
	}
	for _, g := range f.groups {
		g.Workloads, g.More = some(g.Workloads)
	}
	return f
}

// some are the first of some names, in order, and how many are left out.
func some(names []string) ([]string, int) {
	slices.Sort(names)
	n := min(len(names), mostNames)
	return names[:n], len(names) - n
}

// workload is what a proxy belongs to, NAMESPACE/NAME: as its injector says, or else its own name.
func workload(s xds.StreamStatus, id istio.NodeID) string {
	fields := s.Client.GetMetadata().GetFields()
	name := cmp.Or(fields["WORKLOAD_NAME"].GetStringValue(), id.Name, s.Node)
	if namespace := cmp.Or(fields["NAMESPACE"].GetStringValue(), id.Namespace); namespace != "" {
		return namespace + "/" + name
	}
	return name
}

func bodiesOf(types []admin.TypeDump, names ...string) (all []*view.Body) {
	for _, t := range types {
		if !t.Sensitive && slices.ContainsFunc(names, func(n string) bool { return t.Type == admin.TypeURL(n) }) {
			all = append(all, t.Bodies...)
		}
	}
	return all
}

// read returns the hosts of a route configuration, or those to which a listener leads connections
// or datagrams. It is never nil.
func (t *topologies) read(b *view.Body) ([]readHost, error) {
	if all := t.hosts[b]; all != nil {
		return all, nil
	}
	all, value := []readHost{}, redact.Message(b.TypeURL(), b.Value())
	add := func(h Host) {
		key, err := json.Marshal(h)
		if err == nil {
			all = append(all, readHost{h, string(key)})
		}
	}
	if b.TypeURL() == admin.TypeURL("rds") {
		c := &routev3.RouteConfiguration{}
		if err := proto.Unmarshal(value, c); err != nil {
			return nil, err
		}
		for _, v := range c.VirtualHosts {
			h := Host{Routes: c.Name, Host: v.Name, Ways: []Way{}}
			for _, r := range v.Routes {
				h.Ways = append(h.Ways, wayOf(r))
			}
			add(h)
		}
		return all, nil
	}
	l := &listenerv3.Listener{}
	if err := proto.Unmarshal(value, l); err != nil {
		return nil, err
	}
	for _, c := range append(slices.Clone(l.FilterChains), l.DefaultFilterChain) {
		if way, ok := connectionWay(l, c); ok {
			add(Host{Routes: l.Name, Host: serviceOf(way.To[0].Cluster), Ways: []Way{way}})
		}
	}
	if way, ok := datagramWay(l); ok {
		add(Host{Routes: l.Name, Host: serviceOf(way.To[0].Cluster), Ways: []Way{way}})
	}
	return all, nil
}

// datagramWay is where a listener leads datagrams; ok is false where it doesn't. Clusters have
// parts of a client's hash, one after another from the highest down, and the last has what is left.
func datagramWay(l *listenerv3.Listener) (w Way, ok bool) {
	for _, f := range l.ListenerFilters {
		var p udpv3.UdpProxyConfig
		if a := f.GetTypedConfig(); a == nil || !a.MessageIs(&p) || a.UnmarshalTo(&p) != nil {
			continue
		}
		left := 100.0
		for _, m := range p.GetMatcher().GetMatcherList().GetMatchers() {
			var h hashing.ConsistentHashing
			if m.GetPredicate().GetSinglePredicate().GetCustomMatch().GetTypedConfig().UnmarshalTo(&h) != nil || h.Modulo == 0 {
				return w, false // somebody's own
			}
			from := 100 * float64(h.Threshold) / float64(h.Modulo)
			w.To = append(w.To, Target{ledBy(m.GetOnMatch()), left - from})
			left = from
		}
		w.To = append(w.To, Target{ledBy(p.GetMatcher().GetOnNoMatch()), left})
	}
	return w, len(w.To) > 0 && w.To[0].Cluster != ""
}

// ledBy is the cluster to which a match leads datagrams.
func ledBy(m *matcherv3.Matcher_OnMatch) string {
	var r udpv3.Route
	_ = m.GetAction().GetTypedConfig().UnmarshalTo(&r) // without one it is empty
	return r.Cluster
}

// connectionWay is where a filter chain leads connections outbound; ok is false where it doesn't.
func connectionWay(l *listenerv3.Listener, c *listenerv3.FilterChain) (w Way, ok bool) {
	for _, f := range c.GetFilters() {
		var tcp tcpv3.TcpProxy
		if a := f.GetTypedConfig(); a == nil || !a.MessageIs(&tcp) || a.UnmarshalTo(&tcp) != nil {
			continue
		}
		w.Rule = rules.OfChain(l, c)
		total := 0.0
		for _, s := range tcp.GetWeightedClusters().GetClusters() {
			total += float64(s.GetWeight())
		}
		for _, s := range tcp.GetWeightedClusters().GetClusters() {
			w.To = append(w.To, Target{s.GetName(), 100 * float64(s.GetWeight()) / max(total, 1)})
		}
		if tcp.GetCluster() != "" {
			w.To = []Target{{tcp.GetCluster(), 100}}
		}
	}
	ok = len(w.To) > 0 && !slices.ContainsFunc(w.To, func(t Target) bool { return !strings.HasPrefix(t.Cluster, "outbound") })
	return w, ok
}

// serviceOf is how people name the service of a cluster: HOST:PORT.
func serviceOf(cluster string) string {
	if n, ok := rules.SplitCluster(cluster); ok {
		return n.Host + ":" + n.Port
	}
	return cluster
}

// assignment returns the addresses of a cluster's endpoints.
func (t *topologies) assignment(b *view.Body) (readAssignment, error) {
	if a, known := t.addresses[b]; known {
		return a, nil
	}
	m := &endpointv3.ClusterLoadAssignment{}
	if err := proto.Unmarshal(b.Value(), m); err != nil {
		return readAssignment{}, err
	}
	a := readAssignment{cluster: m.ClusterName, addresses: []string{}}
	for _, l := range m.Endpoints {
		for _, e := range l.LbEndpoints {
			a.addresses = append(a.addresses, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
		}
	}
	return a, nil
}

// choose takes the hosts that are asked for, those first whose routes somebody wrote, and says
// where their rules stand.
func (t *topologies) choose(out *Topology, found map[string]*MeshHost, find string) {
	for _, h := range found {
		if find == "" || h.contains(find, out.Clients) {
			out.Hosts = append(out.Hosts, *h)
		}
	}
	slices.SortFunc(out.Hosts, func(a, b MeshHost) int {
		return cmp.Or(cmp.Compare(a.written(), b.written()), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Routes, b.Routes), slices.Compare(a.From, b.From))
	})
	out.All = len(out.Hosts)
	if out.All > mostHosts {
		out.Hosts, out.More = out.Hosts[:mostHosts], out.All-mostHosts
	}
	places := placesOf(t.of)
	for i := range out.Hosts {
		h := &out.Hosts[i]
		h.Ways = slices.Clone(h.Ways) // what was read is kept
		for j := range h.Ways {
			r := &h.Ways[j].Rule
			if r.Object == "" {
				r.Kind = ""
			}
			places.Own(r)
		}
	}
}

// written is 0 for a host whose routes somebody wrote, 1 for others.
func (h *MeshHost) written() int {
	if slices.ContainsFunc(h.Ways, func(w Way) bool { return w.Rule.Object != "" }) {
		return 0
	}
	return 1
}

// contains reports whether a host, what it leads to, its rules or its clients have a text in their
// names, which is in lower case.
func (h *MeshHost) contains(text string, clients []Client) bool {
	has := func(name string) bool { return strings.Contains(strings.ToLower(name), text) }
	if has(h.Host) {
		return true
	}
	for _, w := range h.Ways {
		if has(w.Rule.Object) || slices.ContainsFunc(w.To, func(t Target) bool { return has(t.Cluster) }) {
			return true
		}
	}
	return slices.ContainsFunc(h.From, func(i int) bool { return slices.ContainsFunc(clients[i].Workloads, has) })
}

// serve adds the services that the hosts lead to.
func (t *Topology) serve(behind map[string][]string, at map[string]string) {
	named := map[string]bool{}
	for _, h := range t.Hosts {
		for _, w := range h.Ways {
			for _, to := range w.To {
				named[to.Cluster] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		s := Service{Cluster: name, Endpoints: len(behind[name])}
		workloads := map[string]bool{}
		for _, a := range behind[name] {
			if w := at[a]; w != "" {
				workloads[w] = true
			}
		}
		s.Workloads, s.More = some(slices.Collect(maps.Keys(workloads)))
		t.Services = append(t.Services, s)
	}
}
