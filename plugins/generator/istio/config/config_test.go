package config

import (
	"testing"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

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
