package mosn

import (
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/coxswain-mesh/coxswain/sdk"
)

// routes returns a route configuration whose one route matches a header so.
func routes(t *testing.T, matcher string) *routev3.RouteConfiguration {
	t.Helper()
	c := &routev3.RouteConfiguration{}
	text := `{"name":"80","virtualHosts":[{"name":"a","domains":["*"],"routes":[{"match":{"prefix":"/","headers":[` + matcher + `]}}]}]}`
	if err := protojson.Unmarshal([]byte(text), c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestHeaders(t *testing.T) {
	for given, want := range map[string]string{
		`{"name":"x","stringMatch":{"exact":"two"}}`:                    `{"name":"x","exactMatch":"two"}`,
		`{"name":"x","stringMatch":{"exact":"t.o"},"invertMatch":true}`: `{"name":"x","exactMatch":"t.o","invertMatch":true}`,
		`{"name":"x","stringMatch":{"exact":"t.o","ignoreCase":true}}`:  `{"name":"x","safeRegexMatch":{"regex":"^(?i)t\\.o$"}}`,
		`{"name":"x","stringMatch":{"prefix":"t."}}`:                    `{"name":"x","safeRegexMatch":{"regex":"^t\\..*$"}}`,
		`{"name":"x","stringMatch":{"suffix":"o"}}`:                     `{"name":"x","safeRegexMatch":{"regex":"^.*o$"}}`,
		`{"name":"x","stringMatch":{"contains":"w"}}`:                   `{"name":"x","safeRegexMatch":{"regex":"^.*w.*$"}}`,
		`{"name":"x","stringMatch":{"safeRegex":{"regex":"one|two"}}}`:  `{"name":"x","safeRegexMatch":{"regex":"^(?:one|two)$"}}`,
		`{"name":"x","presentMatch":true}`:                              `{"name":"x","safeRegexMatch":{"regex":"^.*$"}}`,
		`{"name":"x","exactMatch":"two"}`:                               "",
		`{"name":"x","rangeMatch":{"start":"1","end":"3"}}`:             "",
	} {
		c := routes(t, given)
		manager, err := anypb.New(&hcmv3.HttpConnectionManager{RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: c}})
		if err != nil {
			t.Fatal(err)
		}
		l := &listenerv3.Listener{Name: "l", UseOriginalDst: nil, FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			Name: "http", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: manager},
		}}}}}
		got := &routev3.RouteConfiguration{}
		if !apply(t, routeType, c, got) != (want == "") {
			t.Errorf("%s: routes changed or not, want %q", given, want)
		}
		var listener listenerv3.Listener
		if !apply(t, listenerType, l, &listener) != (want == "") {
			t.Errorf("%s: the listener changed or not, want %q", given, want)
		}
		if want == "" {
			continue
		}
		var inside hcmv3.HttpConnectionManager
		if err := listener.FilterChains[0].Filters[0].GetTypedConfig().UnmarshalTo(&inside); err != nil {
			t.Fatal(err)
		}
		for _, is := range []*routev3.RouteConfiguration{got, inside.GetRouteConfig()} {
			if diff := cmp.Diff(routes(t, want), is, protocmp.Transform()); diff != "" {
				t.Errorf("%s: %s", given, diff)
			}
		}
	}
}

// apply patches a message and reports whether it was changed.
func apply(t *testing.T, typeURL string, given, into proto.Message) bool {
	t.Helper()
	body, err := proto.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	changed, removed, err := patch(nil, typeURL, nil, []sdk.Resource{{Name: "a", Body: body}})
	if err != nil || len(removed) > 0 {
		t.Fatal(removed, err)
	}
	if len(changed) == 0 {
		return false
	}
	if err := proto.Unmarshal(changed[0].Body, into); err != nil {
		t.Fatal(err)
	}
	return true
}
