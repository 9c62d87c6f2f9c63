package question

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// crowd is a control plane with sidecars, of which those of one view have the same routes.
type crowd struct {
	admin.Source
	streams []xds.StreamStatus
	views   map[uint64]uint64
	types   map[string][]admin.TypeDump
	rows    map[string][]*pb.Row
	dumped  int
}

func newCrowd() *crowd {
	return &crowd{views: map[uint64]uint64{}, types: map[string][]admin.TypeDump{}, rows: map[string][]*pb.Row{}}
}

// join adds a sidecar of a workload.
func (*crowd) Derivations() map[admin.RowName]admin.RowName { return nil }

func (c *crowd) join(t testing.TB, n int, name string, view uint64, types []admin.TypeDump) {
	t.Helper()
	id := fmt.Sprintf("sidecar~10.0.%d.%d~%s-%d.shop~shop.svc.cluster.local", n/250, n%250+1, name, n)
	facts, err := structpb.NewStruct(map[string]any{"NAMESPACE": "shop", "WORKLOAD_NAME": name})
	if err != nil {
		t.Fatal(err)
	}
	c.streams = append(c.streams, xds.StreamStatus{
		Connection: uint64(n), Node: id, Client: &corev3.Node{Id: id, Metadata: facts}, Names: map[string][]string{admin.TypeURL("rds"): {"80"}},
	})
	c.views[uint64(n)], c.types[id] = view, types
}

func (c *crowd) Revision() admin.Revision { return admin.Revision{Number: 9} }

func (c *crowd) Streamed() []xds.StreamStatus { return c.streams }

func (c *crowd) Streams() (all []admin.Stream) {
	for _, s := range c.streams {
		all = append(all,
			admin.Stream{Connection: s.Connection, Node: s.Node, Types: map[string]admin.StreamType{admin.TypeURL("rds"): {View: c.views[s.Connection]}}})
	}
	return all
}

func (c *crowd) Dump(node string) ([]admin.TypeDump, bool) {
	c.dumped++
	types, ok := c.types[node]
	return types, ok
}

func (c *crowd) Tables() []admin.Table {
	return []admin.Table{{Name: "networking.istio.io/VirtualService"}}
}

func (c *crowd) Rows(table string) []*pb.Row { return c.rows[table] }

func bodyOf(t testing.TB, short, name, text string, into proto.Message) *view.Body {
	t.Helper()
	if err := protojson.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
	value, err := proto.Marshal(into)
	if err != nil {
		t.Fatal(err)
	}
	return view.NewBody(admin.TypeURL(short), name, value, 0)
}

const (
	meshRoutes = `{"name": "80", "virtual_hosts": [
	 {"name": "cart.shop:80", "domains": ["cart.shop"], "routes": [{"match": {"prefix": "/", "headers": [{"name": "authorization", "string_match": {"exact": "Bearer planted-hunter22"}}]},
	  "metadata": {"filter_metadata": {"istio": {"config": "/apis/networking.istio.io/v1/namespaces/shop/virtual-service/cart"}}},
	  "route": {"weighted_clusters": {"clusters": [{"name": "outbound|80|v1|cart.shop", "weight": 75}, {"name": "outbound|80|v2|cart.shop", "weight": 25}]}}}]},
	 {"name": "web.shop:80", "domains": ["web.shop"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "outbound|80||web.shop"}}]}]}`
	meshListener = `{"name": "10.5.0.1_9000", "address": {"socket_address": {"address": "10.5.0.1", "port_value": 9000}}, "filter_chains": [
	 {"filters": [{"name": "tcp", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy", "stat_prefix": "x", "cluster": "outbound|9000||db.shop"}}]},
	 {"filters": [{"name": "tcp", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy", "stat_prefix": "x", "cluster": "inbound|8080||"}}]}]}`
	meshDatagrams = `{"name": "udp_0.0.0.0_53", "listener_filters": [{"name": "udp", "typed_config": {
	 "@type": "type.googleapis.com/envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig", "stat_prefix": "x", "matcher": {
	 "matcher_list": {"matchers": [{"predicate": {"single_predicate": {"input": {"name": "port"}, "custom_match": {"name": "hash", "typed_config": {
	   "@type": "type.googleapis.com/envoy.extensions.matching.input_matchers.consistent_hashing.v3.ConsistentHashing", "threshold": 3, "modulo": 4}}}},
	  "on_match": {"action": {"name": "route", "typed_config": {
	   "@type": "type.googleapis.com/envoy.extensions.filters.udp.udp_proxy.v3.Route", "cluster": "outbound_udp|53||dns.shop"}}}}]},
	 "on_no_match": {"action": {"name": "route", "typed_config": {
	  "@type": "type.googleapis.com/envoy.extensions.filters.udp.udp_proxy.v3.Route", "cluster": "outbound_udp|53||other.shop"}}}}}}]}`
	meshEndpoints = `{"cluster_name": "outbound|80|v1|cart.shop", "endpoints": [{"lb_endpoints": [
	 {"endpoint": {"address": {"socket_address": {"address": "10.0.0.4", "port_value": 8080}}}}, {"endpoint": {"address": {"socket_address": {"address": "10.9.9.9", "port_value": 8080}}}}]}]}`
)

func meshTypes(t *testing.T) []admin.TypeDump {
	return []admin.TypeDump{
		{Type: admin.TypeURL("rds"), Bodies: []*view.Body{bodyOf(t, "rds", "80", meshRoutes, &routev3.RouteConfiguration{})}},
		{Type: admin.TypeURL("lds"), Bodies: []*view.Body{
			bodyOf(t, "lds", "l", meshListener, &listenerv3.Listener{}), bodyOf(t, "lds", "d", meshDatagrams, &listenerv3.Listener{}),
		}},
		{Type: admin.TypeURL("eds"), Bodies: []*view.Body{bodyOf(t, "eds", "e", meshEndpoints, &endpointv3.ClusterLoadAssignment{})}},
		{Type: admin.TypeURL("sds"), Sensitive: true, Bodies: []*view.Body{view.NewBody(admin.TypeURL("sds"), "hush", []byte("hush"), 0)}},
	}
}

func topologyOf(t *testing.T, page admin.Page, query string) (*Topology, string) {
	t.Helper()
	w := httptest.NewRecorder()
	page.Serve(w, httptest.NewRequest("GET", TopologyPath+query, nil))
	out := &Topology{}
	if err := json.Unmarshal(w.Body.Bytes(), out); w.Code != 200 || err != nil {
		t.Fatalf("%s: %d %v %.300s", query, w.Code, err, w.Body)
	}
	return out, w.Body.String()
}

// TestTopology: proxies with the same routes are one client; hosts lead to services, by whose rules
// and with which shares, and services to workloads; those whose routes somebody wrote come first.
func TestTopology(t *testing.T) {
	c, types := newCrowd(), meshTypes(t)
	c.rows["networking.istio.io/VirtualService"] = []*pb.Row{{Key: "shop/cart", Source: "cart.yaml:12"}}
	c.join(t, 1, "web", 7, types)
	c.join(t, 2, "web", 7, types)
	c.join(t, 3, "cart", 7, types)
	c.join(t, 4, "alone", 8, []admin.TypeDump{types[0]})
	page := TopologyPage(c)
	out, text := topologyOf(t, page, "")
	if out.Revision != 9 || out.Proxies != 4 || len(out.Clients) != 2 ||
		!slices.Equal(out.Clients[0].Workloads, []string{"shop/cart", "shop/web"}) || out.Clients[0].Proxies != 3 {
		t.Fatalf("%+v", out)
	}
	var said []string
	for _, h := range out.Hosts {
		for _, w := range h.Ways {
			line := fmt.Sprintf("%s %s of %d:", h.Host, w.Rule.Object, h.Proxies)
			for _, to := range w.To {
				line += fmt.Sprintf(" %g %s", to.Percent, to.Cluster)
			}
			said = append(said, line+" "+w.Rule.Source)
		}
	}
	want := []string{
		"cart.shop:80 shop/cart of 4: 75 outbound|80|v1|cart.shop 25 outbound|80|v2|cart.shop cart.yaml:12",
		"db.shop:9000  of 3: 100 outbound|9000||db.shop ",
		"dns.shop:53  of 3: 25 outbound_udp|53||dns.shop 75 outbound_udp|53||other.shop ", "web.shop:80  of 4: 100 outbound|80||web.shop ",
	}
	if !slices.Equal(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
	i := slices.IndexFunc(out.Services, func(s Service) bool { return s.Cluster == "outbound|80|v1|cart.shop" })
	if i < 0 || out.Services[i].Endpoints != 2 || !slices.Equal(out.Services[i].Workloads, []string{"shop/cart"}) {
		t.Errorf("%+v", out.Services)
	}
	if strings.Contains(text, "hunter22") || strings.Contains(text, "hush") {
		t.Errorf("it has a secret: %s", text)
	}
	for find, want := range map[string]int{"CART.shop": 1, "shop%2Fcart": 4, "db.shop": 1, "alone": 2, "nobody": 0, "%3Cscript%3E": 0} {
		if out, _ := topologyOf(t, page, "?find="+find); out.All != want || len(out.Hosts) != want {
			t.Errorf("find %s: %d hosts, want %d", find, out.All, want)
		}
	}
	w := httptest.NewRecorder()
	if page.Serve(w, httptest.NewRequest("GET", TopologyPath+"?find="+strings.Repeat("x", mostFind+1), nil)); w.Code != 400 {
		t.Errorf("a long text: %d", w.Code)
	}
}

// TestTopologyIsBounded: of many proxies with the same routes one is read, of many with routes of
// their own some; of many hosts some are shown, and it is said how many are not.
func TestTopologyIsBounded(t *testing.T) {
	var hosts []string
	for i := range mostHosts + 7 {
		hosts = append(hosts,
			fmt.Sprintf(`{"name": "h%04d", "domains": ["h%04d"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "outbound|80||h%04d"}}]}`, i, i, i))
	}
	many := []admin.TypeDump{{Type: admin.TypeURL("rds"), Bodies: []*view.Body{
		bodyOf(t, "rds", "80", `{"name": "80", "virtual_hosts": [`+strings.Join(hosts, ",")+"]}", &routev3.RouteConfiguration{}),
	}}}
	c := newCrowd()
	for i := range 2000 {
		c.join(t, i, fmt.Sprint("w", i), 1, many)
	}
	page := TopologyPage(c)
	out, _ := topologyOf(t, page, "")
	for range 20 {
		topologyOf(t, page, "?find=h01")
	}
	if c.dumped != 1 || out.Proxies != 2000 || len(out.Clients) != 1 || len(out.Clients[0].Workloads) != mostNames || out.Clients[0].More != 2000-mostNames {
		t.Errorf("%d were read; %+v", c.dumped, out.Clients)
	}
	if len(out.Hosts) != mostHosts || out.More != 7 || out.All != mostHosts+7 {
		t.Errorf("%d hosts, %d more", len(out.Hosts), out.More)
	}
	if out, _ := topologyOf(t, page, "?find=h0506"); out.All != 1 {
		t.Errorf("one that is not shown is not found: %+v", out)
	}
	c = newCrowd()
	for i := range mostClients + 9 {
		c.join(t, i, "w", uint64(i), many)
	}
	if out, _ := topologyOf(t, TopologyPage(c), ""); c.dumped != mostClients || out.Unread != 9 || len(out.Clients) != mostClients {
		t.Errorf("%d were read, %d not", c.dumped, out.Unread)
	}
}

// BenchmarkTopology: 2000 proxies with 20 sets of routes and 10,000 hosts, when nothing of it was
// read before, and again a moment later.
func BenchmarkTopology(b *testing.B) {
	text := func(n int) string {
		var hosts []string
		for i := range 10_000 {
			hosts = append(hosts, fmt.Sprintf(
				`{"name": "h%d-%d", "domains": ["h%d"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "outbound|80||h%d"}}]}`,
				i, n*(i%100/99), i, i,
			))
		}
		return `{"name": "80", "virtual_hosts": [` + strings.Join(hosts, ",") + "]}"
	}
	c := newCrowd()
	for n := range 20 {
		types := []admin.TypeDump{{Type: admin.TypeURL("rds"), Bodies: []*view.Body{bodyOf(b, "rds", "80", text(n), &routev3.RouteConfiguration{})}}}
		for i := range 100 {
			c.join(b, n*100+i, fmt.Sprint("w", i), uint64(n), types)
		}
	}
	page := TopologyPage(c)
	ask := func(page admin.Page) {
		w := httptest.NewRecorder()
		if page.Serve(w, httptest.NewRequest("GET", TopologyPath, nil)); w.Code != 200 {
			b.Fatal(w.Code)
		}
	}
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			ask(TopologyPage(c))
		}
	})
	b.Run("again", func(b *testing.B) {
		ask(page)
		for b.Loop() {
			ask(page)
		}
	})
}
