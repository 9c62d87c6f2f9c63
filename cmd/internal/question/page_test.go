package question

import (
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/view"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

const nodeID = "router~10.0.0.3~gw.edge~edge.svc.cluster.local"

// What the gateway has. The route's header for upstreams is a secret.
const (
	listener = `{"name": "web", "address": {"socket_address": {"address": "10.0.0.3", "port_value": 80}}, "filter_chains": [{"filters": [{"name": "http",
	 "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
	 "rds": {"route_config_name": "80"}, "http_filters": [{"name": "router",
	 "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]}}]}]}`
	routes = `{"name": "80", "virtual_hosts": [{"name": "shop", "domains": ["shop.example"], "routes": [{"name": "beta", "match": {"prefix": "/beta"},
	 "metadata": {"filter_metadata": {"istio": {"config": "/apis/networking.istio.io/v1/namespaces/shop/virtual-service/cart"}}},
	 "request_headers_to_add": [{"header": {"key": "authorization", "value": "Bearer planted-hunter22"}}],
	 "route": {"cluster": "outbound|80|v2|cart.shop.svc.cluster.local"}}]}]}`
	cluster = `{"name": "outbound|80|v2|cart.shop.svc.cluster.local", "type": "STATIC", "load_assignment": {"cluster_name": "c",
	 "endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"socket_address": {"address": "10.0.0.9", "port_value": 8080}}}}]}]},
	 "metadata": {"filter_metadata": {"istio": {"config": "/apis/networking.istio.io/v1/namespaces/shop/destination-rule/cart"}}}}`
)

// gateway is a control plane with one proxy.
type gateway struct {
	admin.Source
	t       *testing.T
	derived map[admin.RowName]admin.RowName
}

func (g gateway) Derivations() map[admin.RowName]admin.RowName { return g.derived }

func (g gateway) body(typeURL, name, text string, into proto.Message) *view.Body {
	g.t.Helper()
	if err := protojson.Unmarshal([]byte(text), into); err != nil {
		g.t.Fatal(err)
	}
	value, err := proto.Marshal(into)
	if err != nil {
		g.t.Fatal(err)
	}
	return view.NewBody(typeURL, name, value, 0)
}

func (g gateway) Dump(node string) ([]admin.TypeDump, bool) {
	lds, rds, cds := admin.TypeURL("lds"), admin.TypeURL("rds"), admin.TypeURL("cds")
	return []admin.TypeDump{
		{Type: lds, Bodies: []*view.Body{g.body(lds, "web", listener, &listenerv3.Listener{})}},
		{Type: rds, Bodies: []*view.Body{g.body(rds, "80", routes, &routev3.RouteConfiguration{})}},
		{Type: cds, Bodies: []*view.Body{g.body(cds, "c", cluster, &clusterv3.Cluster{})}},
		{Type: admin.TypeURL("sds"), Sensitive: true, Bodies: []*view.Body{view.NewBody(admin.TypeURL("sds"), "hush", []byte("hush"), 0)}},
	}, node == nodeID
}

func (gateway) Tables() []admin.Table {
	return []admin.Table{{Name: "networking.istio.io/VirtualService"}, {Name: "networking.istio.io/DestinationRule"}}
}

func (gateway) Rows(table string) []*pb.Row {
	if table != "networking.istio.io/VirtualService" {
		return nil
	}
	return []*pb.Row{{Key: "shop/other", Source: "other.yaml:9"}, {Key: "shop/cart", Source: "cart.yaml:12"}}
}

// TestDerived: the walk and the rules name what people wrote, and not what a plugin derived from
// it.
func TestDerived(t *testing.T) {
	page := Page(gateway{t: t, derived: map[admin.RowName]admin.RowName{
		{Table: "networking.istio.io/VirtualService", Key: "shop/cart"}: {Table: "gateway.networking.k8s.io/HTTPRoute", Key: "shop/web"},
	}})
	w := httptest.NewRecorder()
	page.Serve(w, httptest.NewRequest("GET", Path+"?proxyID="+url.QueryEscape(nodeID)+"&url=http://shop.example/beta", nil))
	var a Answer
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || len(a.Rules) == 0 {
		t.Fatalf("%v %s", err, w.Body)
	}
	if r := a.Rules[0]; r.Kind != "HTTPRoute" || r.Object != "shop/web" || r.Source != "cart.yaml:12" {
		t.Errorf("the rule is of %s %s, %s", r.Kind, r.Object, r.Source)
	}
	if text := w.Body.String(); !strings.Contains(text, "; from HTTPRoute shop/web (cart.yaml:12)") || strings.Contains(text, "virtual-service") {
		t.Errorf("it says %s", text)
	}
}

// TestPage: the walk, the rules that decided, in order and with their places; nothing secret; and
// what can't be asked.
func TestPage(t *testing.T) {
	page := Page(gateway{t: t})
	ask := func(query string) (int, string) {
		w := httptest.NewRecorder()
		page.Serve(w, httptest.NewRequest("GET", Path+"?"+query, nil))
		return w.Code, w.Body.String()
	}
	node := "proxyID=" + url.QueryEscape(nodeID)
	code, text := ask(node + "&url=http://shop.example/beta")
	var a Answer
	if err := json.Unmarshal([]byte(text), &a); err != nil || code != 200 {
		t.Fatalf("%d %v %s", code, err, text)
	}
	var said []string
	for _, r := range a.Rules {
		said = append(said, r.Kind+" "+r.Object+" "+r.Rule+" "+r.Source)
	}
	const want = "VirtualService shop/cart route beta: prefix /beta cart.yaml:12; DestinationRule shop/cart subset v2 "
	if got := strings.Join(said, "; "); got != want {
		t.Errorf("rules %q, want %q", got, want)
	}
	if a.Outcome.Verdict != "forwarded" || len(a.Outcome.Steps) == 0 || a.Outcome.Way.VirtualHost != "shop" {
		t.Errorf("%+v", a.Outcome)
	}
	if strings.Contains(text, "hunter22") || strings.Contains(text, "hush") {
		t.Errorf("it has a secret: %s", text)
	}
	for query, want := range map[string]struct {
		code int
		text string
	}{
		node + "&url=http://other.example/":                {200, `"Status": 404`},
		node:                                               {400, "where the request goes"},
		"url=http://a/":                                    {400, "say which proxy"},
		"proxyID=nobody&url=http://a/":                     {404, "not connected"},
		node + "&url=shop.example":                         {400, "http://HOST"},
		node + "&url=http://a/&to=here":                    {400, "--to is IP:PORT"},
		node + "&url=http://a/&header=x":                   {400, "NAME: VALUE"},
		node + "&url=http://a/&inbound=true&outbound=true": {400, "either"},
		node + "&url=http://a/" + strings.Repeat("&header=a:b", mostHeaders+1):           {400, "there may be"},
		node + "&url=http://a/" + strings.Repeat("x", mostBytes):                         {414, "more than"},
		node + "&url=http://shop.example/%00%ff":                                         {400, "no http://HOST"},
		node + "&url=%zz":                                                                {400, "invalid URL escape"},
		node + "&url=http://shop.example/beta&method=%3Cscript%3E&header=a:%3Cscript%3E": {200, "forwarded"},
	} {
		if code, text := ask(query); code != want.code || !strings.Contains(text, want.text) {
			t.Errorf("%.200s: %d %.300s", query, code, text)
		}
	}
}

// TestReach: where a proxy's routes lead, by whose rules, and with which shares.
func TestReach(t *testing.T) {
	page := ReachPage(gateway{t: t})
	ask := func(query string) (int, string) {
		w := httptest.NewRecorder()
		page.Serve(w, httptest.NewRequest("GET", ReachPath+query, nil))
		return w.Code, w.Body.String()
	}
	code, text := ask("?proxyID=" + url.QueryEscape(nodeID))
	var r Reach
	if err := json.Unmarshal([]byte(text), &r); err != nil || code != 200 || len(r.Hosts) != 1 || len(r.Hosts[0].Ways) != 1 {
		t.Fatalf("%d %v %s", code, err, text)
	}
	way := r.Hosts[0].Ways[0]
	if way.Rule.Object != "shop/cart" || way.Rule.Source != "cart.yaml:12" || len(way.To) != 1 ||
		way.To[0] != (Target{"outbound|80|v2|cart.shop.svc.cluster.local", 100}) {
		t.Errorf("%+v", way)
	}
	if strings.Contains(text, "hunter22") {
		t.Errorf("it has a secret: %s", text)
	}
	for query, want := range map[string]int{"": 400, "?proxyID=nobody": 404} {
		if code, text := ask(query); code != want {
			t.Errorf("%s: %d %s", query, code, text)
		}
	}
	split := wayOf(&routev3.Route{Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_WeightedClusters{
		WeightedClusters: &routev3.WeightedCluster{Clusters: []*routev3.WeightedCluster_ClusterWeight{
			{Name: "a", Weight: wrapperspb.UInt32(9)}, {Name: "b", Weight: wrapperspb.UInt32(3)}, {Name: "c"},
		}}}}}})
	if want := []Target{{"a", 75}, {"b", 25}, {"c", 0}}; !slices.Equal(split.To, want) {
		t.Errorf("%+v, want %+v", split.To, want)
	}
	redirect := wayOf(&routev3.Route{Action: &routev3.Route_Redirect{}})
	gone := wayOf(&routev3.Route{Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 410}}})
	if redirect.Answer != "a redirect" || gone.Answer != "status 410" || wayOf(&routev3.Route{}).Answer == "" {
		t.Errorf("%+v %+v", redirect, gone)
	}
}
