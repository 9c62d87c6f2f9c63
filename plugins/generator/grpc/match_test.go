package grpc

import (
	"fmt"
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protojson"
	networking "istio.io/api/networking/v1alpha3"
)

// TestEveryFieldOfAMatch: what a client of gRPC can't tell matches nothing, whichever field asks
// for it. Each field of a match has rows; a new one of the API fails the test.
func TestEveryFieldOfAMatch(t *testing.T) {
	const never, all = "never", "prefix"
	rows := []struct{ field, match, want string }{
		{"name", `{"name":"x"}`, all},
		{"uri", `{"uri":{"exact":"/s/m"}}`, "path /s/m"},
		{"uri", `{"uri":{"prefix":"/s/"}}`, "prefix /s/"},
		{"uri", `{"uri":{"regex":"/s.*"}}`, "regex /s.*"},
		{"scheme", `{"scheme":{"exact":"https"}}`, never},
		{"method", `{"method":{"exact":"GET"}}`, never},
		{"method", `{"method":{"exact":"POST"}}`, all},
		{"method", `{"method":{"regex":"P(OST|UT)"}}`, all},
		{"method", `{"method":{"regex":"P"}}`, never},
		{"method", `{"method":{"prefix":"P"}}`, all},
		{"authority", `{"authority":{"exact":"other.test"}}`, never},
		{"headers", `{"headers":{"x-a":{"exact":"1"}}}`, "prefix, x-a is 1"},
		{"headers", `{"headers":{"x-a":{"prefix":"1"}}}`, "prefix, x-a begins with 1"},
		{"headers", `{"headers":{"x-a":{"regex":"1.*"}}}`, "prefix, x-a is like 1.*"},
		{"headers", `{"headers":{"x-a":{"regex":"*"}}}`, "prefix, x-a is there"},
		{"headers", `{"headers":{"x-a":{}}}`, "prefix, x-a is there"},
		{"port", `{"port":7070}`, all},
		{"port", `{"port":7071}`, never},
		{"sourceLabels", `{"sourceLabels":{"app":"cli"}}`, all},
		{"sourceLabels", `{"sourceLabels":{"app":"other"}}`, never},
		{"sourceLabels", `{"sourceLabels":{"app":"cli","tier":"x"}}`, never},
		{"gateways", `{"gateways":["mesh"]}`, all},
		{"gateways", `{"gateways":["shop/edge"]}`, never},
		{"queryParams", `{"queryParams":{"a":{"exact":"1"}}}`, never},
		{"ignoreUriCase", `{"uri":{"exact":"/s/m"},"ignoreUriCase":true}`, "path /s/m in any case"},
		{"withoutHeaders", `{"withoutHeaders":{"x-a":{"exact":"1"}}}`, "prefix, not: x-a is there; prefix, not: x-a is 1"},
		{"withoutHeaders", `{"withoutHeaders":{"x-a":{"regex":"*"}}}`, "prefix, not: x-a is there"},
		{"withoutHeaders", `{"withoutHeaders":{"x-a":{}}}`, "prefix, not: x-a is there"},
		{"withoutHeaders", `{"withoutHeaders":{"x-a":{},"x-b":{"prefix":"1"}}}`,
			"prefix, not: x-a is there, not: x-b is there; prefix, not: x-a is there, not: x-b begins with 1"},
		{"withoutHeaders", `{"withoutHeaders":{"a":{},"b":{},"c":{},"d":{},"e":{}}}`, never},
		{"sourceNamespace", `{"sourceNamespace":"shop"}`, all},
		{"sourceNamespace", `{"sourceNamespace":"other"}`, never},
		{"statPrefix", `{"statPrefix":"x"}`, all},
	}
	tried := map[string]bool{}
	for _, r := range rows {
		tried[r.field] = true
		m := &networking.HTTPMatchRequest{}
		if err := protojson.Unmarshal([]byte(r.match), m); err != nil {
			t.Fatal(r.match, err)
		}
		c := shop()
		c.routing = []resource[*networking.VirtualService]{
			{"shop", 1, "shop/v", &networking.VirtualService{Hosts: []string{host}, Http: []*networking.HTTPRoute{{
				Match: []*networking.HTTPMatchRequest{m}, Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: host}}},
			}}}},
		}
		c.sourceLabels = sourceLabels(c.routing)
		v := view{Namespace: "shop", Labels: labelsAmong(c.sourceLabels, map[string]string{"app": "cli", "version": "v1"})}
		made := c.build(routeType, v, "outbound|7070||"+host).(*routev3.RouteConfiguration).VirtualHosts[0].Routes
		var got []string
		for _, each := range made {
			got = append(got, words(each.Match))
		}
		if said := strings.Join(got, "; "); said != r.want && !(said == "" && r.want == never) {
			t.Errorf("%s: %q, want %q", r.match, said, r.want)
		}
	}
	fields := (&networking.HTTPMatchRequest{}).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if name := fields.Get(i).JSONName(); !tried[name] {
			t.Errorf("nothing says what %s means to clients of gRPC", name)
		}
	}
}

// words are what a match asks for.
func words(m *routev3.RouteMatch) string {
	out := "prefix"
	switch p := m.PathSpecifier.(type) {
	case *routev3.RouteMatch_Path:
		out = "path " + p.Path
	case *routev3.RouteMatch_Prefix:
		out = strings.TrimSpace("prefix " + p.Prefix)
	case *routev3.RouteMatch_SafeRegex:
		out = "regex " + p.SafeRegex.Regex
	}
	if m.CaseSensitive != nil && !m.CaseSensitive.Value {
		out += " in any case"
	}
	for _, h := range m.Headers {
		not := ""
		if h.InvertMatch {
			not = "not: "
		}
		text := h.GetStringMatch()
		switch {
		case h.GetPresentMatch():
			out += fmt.Sprintf(", %s%s is there", not, h.Name)
		case text.GetExact() != "":
			out += fmt.Sprintf(", %s%s is %s", not, h.Name, text.GetExact())
		case text.GetPrefix() != "":
			out += fmt.Sprintf(", %s%s begins with %s", not, h.Name, text.GetPrefix())
		default:
			out += fmt.Sprintf(", %s%s is like %s", not, h.Name, text.GetSafeRegex().GetRegex())
		}
	}
	return out
}
