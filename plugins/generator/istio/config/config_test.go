package config

import (
	"slices"
	"testing"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
)

func TestResolve(t *testing.T) {
	for host, want := range map[string]string{
		"reviews":     "reviews.default.svc.cluster.local",
		"reviews.com": "reviews.com",
		"*":           "*",
		"*.com":       "*.com",
		"":            "",
	} {
		if got := Resolve(host, "default", "cluster.local"); got != want {
			t.Errorf("%q: %q, want %q", host, got, want)
		}
	}
}

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"*", "a.b", true},
		{"*", "*.b", true},
		{"*.b", "a.b", true},
		{"*.b", "*.a.b", true},
		{"*.a.b", "*.b", false},
		{"*.b", "b", false},
		{"a.b", "*.b", false},
		{"a.b", "a.b", true},
	} {
		if got := Covers(c.a, c.b); got != c.want {
			t.Errorf("%s covers %s: %v", c.a, c.b, got)
		}
	}
}

func TestMoreSpecific(t *testing.T) {
	order := []string{"b.example.com", "a.com", "*.b.example.com", "*.com", "*"}
	for i := range len(order) - 1 {
		if MoreSpecific(order[i], order[i+1]) >= 0 || MoreSpecific(order[i+1], order[i]) <= 0 {
			t.Errorf("%s comes before %s", order[i], order[i+1])
		}
	}
}

func TestReach(t *testing.T) {
	for _, c := range []struct {
		exportTo, defaults []string
		client             string
		want               Reach
		names              []string
	}{
		{nil, nil, "other", Everybody, []string{"*"}},
		{[]string{"*"}, nil, "other", Everybody, []string{"*"}},
		{[]string{"."}, nil, "other", Nobody, []string{"own"}},
		{[]string{"."}, nil, "own", Own, []string{"own"}},
		{[]string{"own"}, nil, "own", Own, []string{"own"}},
		{[]string{"~"}, nil, "own", Nobody, nil},
		{[]string{"~", "own", "other"}, nil, "other", Nobody, nil},
		{[]string{"~", "*"}, nil, "other", Everybody, []string{"*"}},
		{[]string{"other"}, nil, "other", Named, []string{"other"}},
		{[]string{"other", "."}, nil, "other", Named, []string{"other", "own"}},
		{[]string{"other"}, nil, "own", Nobody, []string{"other"}},
		{nil, []string{"."}, "other", Nobody, []string{"own"}},
		{nil, []string{"*", "."}, "other", Everybody, []string{"*"}},
		{nil, []string{"own", "."}, "own", Own, []string{"own"}},
		{nil, []string{"other"}, "other", Nobody, nil},
		{nil, []string{"~"}, "own", Nobody, nil},
		{[]string{"*"}, []string{"."}, "other", Everybody, []string{"*"}},
	} {
		if got := ReachOf(c.exportTo, c.defaults, "own", c.client); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
		if got := Export(c.exportTo, c.defaults, "own"); !slices.Equal(got, c.names) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestNamesInVirtualServices(t *testing.T) {
	spec := &networking.VirtualService{
		Hosts:    []string{"reviews", "*.example.com"},
		Gateways: []string{"mesh", "web", "other/web", "web.old.svc.cluster.local", "./own"},
		Http: []*networking.HTTPRoute{{
			Match:   []*networking.HTTPMatchRequest{{Gateways: []string{"web"}}},
			Route:   []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "reviews"}}},
			Mirrors: []*networking.HTTPMirrorPolicy{{Destination: &networking.Destination{Host: "shadow"}}},
		}},
	}
	payload, err := proto.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	v, err := ParseVirtualService(&pb.Row{Key: "shop/reviews", Payload: payload}, "cluster.local")
	if err != nil {
		t.Fatal(err)
	}
	want := &networking.VirtualService{
		Hosts:    []string{"reviews.shop.svc.cluster.local", "*.example.com"},
		Gateways: []string{"mesh", "shop/web", "other/web", "old/web", "shop/own"},
		Http: []*networking.HTTPRoute{{
			Match:   []*networking.HTTPMatchRequest{{Gateways: []string{"shop/web"}}},
			Route:   []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "reviews.shop.svc.cluster.local"}}},
			Mirrors: []*networking.HTTPMirrorPolicy{{Destination: &networking.Destination{Host: "shadow.shop.svc.cluster.local"}}},
		}},
	}
	if !proto.Equal(v.Spec, want) {
		t.Errorf("got %v", v.Spec)
	}
	if v.Path("virtual-service") != "/apis/networking.istio.io/v1/namespaces/shop/virtual-service/reviews" {
		t.Error(v.Path("virtual-service"))
	}
}

func TestParseProtocol(t *testing.T) {
	for word, want := range map[string]Protocol{
		"http": HTTP, "HTTP2": HTTP2, "grpc": GRPC, "GRPC-WEB": GRPCWeb, "tcp": TCP, "TLS": TLS, "https": HTTPS,
		"Mongo": Mongo, "REDIS": TCP, "MYSQL": MySQL, "udp": UDP, "": Sniffed, "what": Sniffed,
	} {
		if got := ParseProtocol(word); got != want {
			t.Errorf("%q: %v, want %v", word, got, want)
		}
	}
}
