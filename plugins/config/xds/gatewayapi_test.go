package xds

import (
	"context"
	"strings"
	"testing"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/objects"
	"github.com/coxswain-mesh/coxswain/plugins/validation"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

const (
	classes    = "gateway.networking.k8s.io/v1/GatewayClass"
	httpRoutes = "gateway.networking.k8s.io/v1/HTTPRoute"
)

// plain is a resource whose body is a structure, as servers say objects that are no messages.
func plain(t *testing.T, name string, spec map[string]any) *anypb.Any {
	t.Helper()
	body, err := structpb.NewStruct(spec)
	if err != nil {
		t.Fatal(err)
	}
	return object(name, body)
}

// TestGateways: kinds of the Gateway API and Ingresses are read where they are asked for: a class
// has no namespace in its name. A mistake spoils its own object.
func TestGateways(t *testing.T) {
	c, err := parse([]byte(`{"address": "server:1", "types": ["` + classes + `", "` + httpRoutes +
		`", "gateway.networking.k8s.io/v1beta1/ReferenceGrant", "networking.k8s.io/v1/Ingress"]}`))
	if err != nil {
		t.Fatal(err)
	}
	books := newPublication(context.Background(), c, newShard(), validation.New()).books
	say := func(typeURL, version string, resources ...*anypb.Any) reply {
		return books[typeURL].handle(&discovery.DiscoveryResponse{TypeUrl: typeURL, VersionInfo: version, Resources: resources})
	}
	class := plain(t, "/mine", map[string]any{"controllerName": "istio.io/gateway-controller"})
	if r := say(classes, "1", class); did(r) != "+mine" || r.refused != "" ||
		r.upserts[0].Source != "xds://server:1/gateway.networking.k8s.io/GatewayClass//mine" {
		t.Errorf("%q: %s, %v", did(r), r.refused, r.upserts)
	}
	if r := say(classes, "2", class, plain(t, "shop/mine", map[string]any{
		"controllerName": "a",
	})); !strings.Contains(r.refused, `"shop/mine" is no /NAME`) || did(r) != "" {
		t.Errorf("%q: %s", did(r), r.refused)
	}
	if r := say(classes, "3"); did(r) != "-mine" {
		t.Errorf("%q", did(r))
	}
	route := map[string]any{"parentRefs": []any{map[string]any{"name": "edge"}}, "hostnames": []any{"a.example"}}
	r := say(httpRoutes, "1", plain(t, "shop/web", route), object("shop/message", dns("a.example")),
		plain(t, "shop/bad", map[string]any{"hostnames": "a.example"}))
	if did(r) != "+shop/web" || !strings.Contains(r.refused, "spec.hostnames") || !strings.Contains(r.refused, "mismatched message type") {
		t.Errorf("%q: %s", did(r), r.refused)
	}
	if o, err := objects.Decode[gateway.HTTPRouteSpec](r.upserts[0]); err != nil || len(o.Spec.Hostnames) != 1 || o.Spec.ParentRefs[0].Name != "edge" ||
		o.Spec.ParentRefs[0].Kind == nil { // which is a default of the API server's
		t.Error(o, err)
	}
	if _, ok := lookup(gatewayapi.Statuses); ok {
		t.Error("a table of rows that are no objects is asked for")
	}
}
