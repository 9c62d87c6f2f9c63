package route

import (
	"bytes"
	"slices"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
)

func TestDomains(t *testing.T) {
	const own = "default.svc.cluster.local"
	for _, c := range []struct {
		host, client, address string
		want                  []string
	}{
		{"reviews.default.svc.cluster.local", own, "10.0.0.1", []string{
			"10.0.0.1", "reviews", "reviews.default", "reviews.default.svc", "reviews.default.svc.cluster.local", "reviews.default.svc.cluster.local."}},
		{"reviews.prod.svc.cluster.local", own, "0.0.0.0", []string{
			"reviews.prod", "reviews.prod.svc", "reviews.prod.svc.cluster.local", "reviews.prod.svc.cluster.local."}},
		{"api.example.com", own, "2001:db8::1", []string{"[2001:db8::1]", "api.example.com", "api.example.com."}},
		{"*.example.com", own, "2001:db8::/64", []string{"*.example.com", "*.example.com.", "[2001:db8::/64]"}},
		{"*.example.com", own, "192.0.2.0/24", []string{"*.example.com", "*.example.com.", "192.0.2.0/24"}},
		{"db.local.net", "local.net", "", []string{"db", "db.local.net", "db.local.net."}},
		{"*.example.com", own, "", []string{"*.example.com", "*.example.com."}},
		{"*", own, "", []string{"*"}},
		{"10.1.1.1", own, "", []string{"10.1.1.1"}},
		{"10.1.1.1", own, "10.1.1.2", []string{"10.1.1.1", "10.1.1.2"}},
		{"a.reviews.default.svc.cluster.local", own, "", []string{"a.reviews.default", "a.reviews.default.svc",
			"a.reviews.default.svc.cluster.local", "a.reviews.default.svc.cluster.local."}},
		{"reviews.svc.cluster.local", own, "", []string{"reviews.svc.cluster.local", "reviews.svc.cluster.local."}},
		{"reviews.other.cluster.local", own, "", []string{"reviews.other.cluster.local", "reviews.other.cluster.local."}},
		{"db.east.corp.net", "west.corp.net", "", []string{"db.east", "db.east.corp", "db.east.corp.net", "db.east.corp.net."}},
		{"db.net", "corp.net", "", []string{"db", "db.net", "db.net."}},
	} {
		got := slices.Sorted(slices.Values(Domains(c.host, c.client, c.address)))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s for %s: %v, want %v", c.host, c.client, got, c.want)
		}
	}
}

func TestRetryOn(t *testing.T) {
	conditions, codes := retryOn("5xx, 503,418")
	if conditions != "5xx,retriable-status-codes" || !slices.Equal(codes, []uint32{503, 418}) {
		t.Error(conditions, codes)
	}
	if conditions, codes = retryOn("503"); conditions != ",retriable-status-codes" || !slices.Equal(codes, []uint32{503}) {
		t.Error(conditions, codes)
	}
	if conditions, codes = retryOn("777"); conditions != "777" || codes != nil {
		t.Error("no status: ", conditions, codes)
	}
	if conditions, codes = retryOn("reset,retriable-status-codes"); conditions != "reset,retriable-status-codes" || codes != nil {
		t.Error(conditions, codes)
	}
}

func TestBuildStopsBehindWhatTakesAll(t *testing.T) {
	prefix := func(p string) []*networking.HTTPMatchRequest {
		return []*networking.HTTPMatchRequest{{Uri: &networking.StringMatch{MatchType: &networking.StringMatch_Prefix{Prefix: p}}}}
	}
	to := []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "a"}}}
	v := &config.VirtualService{Spec: &networking.VirtualService{Http: []*networking.HTTPRoute{
		{Name: "elsewhere", Match: []*networking.HTTPMatchRequest{{Port: 81}}, Route: to},
		{Name: "other gateway", Match: []*networking.HTTPMatchRequest{{Gateways: []string{"x/y"}}}, Route: to},
		{Name: "other source", Match: []*networking.HTTPMatchRequest{{SourceLabels: map[string]string{"app": "x"}}}, Route: to},
		{Name: "first", Match: prefix("/a"), Route: to},
		{Name: "all", Match: prefix("/"), Route: to},
		{Name: "never", Route: to},
	}}}
	got := Build(v, source())
	var names []string
	for _, r := range got {
		names = append(names, r.Name)
	}
	if !slices.Equal(names, []string{"first", "all"}) {
		t.Errorf("routes %v", names)
	}
}

func source() Source {
	return Source{
		Gateways: []string{config.MeshGateway},
		Port:     80,
		Selected: func(map[string]string, string) bool { return false },
		PortOf:   func(string) uint32 { return 80 },
		Rule:     func(string) *networking.DestinationRule { return nil },
	}
}

func TestGatewayHosts(t *testing.T) {
	v := func(namespace string, hosts ...string) *config.VirtualService {
		return &config.VirtualService{Meta: config.Meta{Namespace: namespace}, Spec: &networking.VirtualService{Hosts: hosts}}
	}
	all := map[string][]string{"default": {"*.a.com", "own.b.com"}, "prod": {"*.a.com", "*.c.com"}}
	s := Server{Port: 80, HostsFor: func(namespace string) []string { return all[namespace] }}
	for _, c := range []struct {
		v    *config.VirtualService
		want []string
	}{
		{v("default", "*"), []string{"*.a.com", "own.b.com"}},
		{v("prod", "*"), []string{"*.a.com", "*.c.com"}},
		{v("prod", "x.a.com", "*.x.a.com", "own.b.com"), []string{"*.x.a.com", "x.a.com"}},
		{v("default", "z.c.com"), nil},
	} {
		if got := s.hostsOf(c.v); !slices.Equal(got, c.want) {
			t.Errorf("%s %v: %v, want %v", c.v.Namespace, c.v.Spec.Hosts, got, c.want)
		}
	}
	none := GatewayHosts([]Server{s}, nil)
	if len(none) != 1 || none[0].Name != "blackhole:80" {
		t.Errorf("without virtual services: %v", none)
	}
	redirect := GatewayHosts([]Server{{Port: 80, Hosts: []string{"A.com"}, HTTPSRedirect: true}}, nil)
	if len(redirect) != 1 || redirect[0].Domains[0] != "a.com" || redirect[0].RequireTls != routev3.VirtualHost_ALL {
		t.Errorf("redirection needs no virtual service: %v", redirect)
	}
}

func TestConfigurationIsWhatEncodingTheWholeWouldBe(t *testing.T) {
	a, b := AllowAny("PassthroughCluster", false), Unknown(80)
	var got routev3.RouteConfiguration
	if err := proto.Unmarshal(bytes.Join(Configuration("80", [][]byte{EncodedHost(a), nil, EncodedHost(b)}), nil), &got); err != nil {
		t.Fatal(err)
	}
	if got.Name != "80" || len(got.VirtualHosts) != 2 || !proto.Equal(got.VirtualHosts[0], a) || !proto.Equal(got.VirtualHosts[1], b) {
		t.Errorf("got %v", &got)
	}
}

func TestAttributesOfCookies(t *testing.T) {
	type lb = networking.LoadBalancerSettings_ConsistentHashLB
	type cookie = networking.LoadBalancerSettings_ConsistentHashLB_HTTPCookie
	got := hashPolicy(&lb{HashKey: &networking.LoadBalancerSettings_ConsistentHashLB_HttpCookie{HttpCookie: &cookie{
		Name: "c", Attributes: []*networking.LoadBalancerSettings_ConsistentHashLB_HTTPCookie_Attribute{{Name: "SameSite", Value: "Strict"}},
	}}})
	if a := got[0].GetCookie().GetAttributes(); len(a) != 1 || a[0].Name != "SameSite" || a[0].Value != "Strict" {
		t.Error(got)
	}
}
