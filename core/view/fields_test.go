package view

import (
	"strings"
	"testing"

	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// made returns a body of a type, from JSON.
func made(t *testing.T, m proto.Message, text string) *Body {
	t.Helper()
	if err := protojson.Unmarshal([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	return NewBody("type.googleapis.com/"+string(m.ProtoReflect().Descriptor().FullName()), "r", encode(t, m), 0)
}

func TestFields(t *testing.T) {
	const host = `{"name":"r","virtual_hosts":[{"name":"a","domains":["a"],"routes":[`
	for name, c := range map[string]struct {
		old, now string
		want     []string
	}{
		"a value deep down": {
			host + `{"route":{"cluster":"v1"}}]}]}`, host + `{"route":{"cluster":"v2"}}]}]}`,
			[]string{`virtual_hosts[a].routes[0].route.cluster: "v1" -> "v2"`},
		},
		"what comes and goes": {
			`{"name":"r","virtual_hosts":[{"name":"a"},{"name":"b"}]}`, `{"name":"r","virtual_hosts":[{"name":"c"},{"name":"a"}]}`,
			[]string{`virtual_hosts[b]: − {"name":"b"}`, `virtual_hosts[c]: + {"name":"c"}`},
		},
		"a secret": {
			`{"name":"r","request_headers_to_add":[{"header":{"key":"authorization","value":"x"}}],"internal_only_headers":["a"]}`,
			`{"name":"r","request_headers_to_add":[{"header":{"key":"authorization","value":"x"}}],"internal_only_headers":["b"]}`,
			[]string{`internal_only_headers[0]: "a" -> "b"`},
		},
	} {
		got := Fields(routeType, made(t, &route.RouteConfiguration{}, c.old), made(t, &route.RouteConfiguration{}, c.now), 8)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestFieldsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	var old, now []string
	for range 50 {
		old, now = append(old, `"a`+long+`"`), append(now, `"b`+long+`"`)
	}
	got := Fields(routeType, made(t, &route.RouteConfiguration{}, `{"internal_only_headers":[`+strings.Join(old, ",")+`]}`),
		made(t, &route.RouteConfiguration{}, `{"internal_only_headers":[`+strings.Join(now, ",")+`]}`), 8)
	if len(got) != 9 || got[8] != "and 42 more" || len(strings.Join(got, "")) > 8*400 {
		t.Errorf("%d lines: %.2000s", len(got), got)
	}
}

// TestSecretsOfFields: of secrets it is said that they differ, come or go.
func TestSecretsOfFields(t *testing.T) {
	const header = `{"name":"r","request_headers_to_add":[{"header":{"key":"authorization","value":"KEY-1"}}]}`
	for name, c := range map[string]struct{ old, now, want string }{
		"another":   {header, strings.ReplaceAll(header, "KEY-1", "KEY-2"), `request_headers_to_add[0].header.value: (masked) changed`},
		"the same":  {header, header, ""},
		"a new one": {`{"name":"r"}`, header, `request_headers_to_add: + [{"header":{"key":"authorization","value":"[redacted]"}}]`},
	} {
		got := Fields(routeType, made(t, &route.RouteConfiguration{}, c.old), made(t, &route.RouteConfiguration{}, c.now), 8)
		if text := strings.Join(got, "\n"); text != c.want {
			t.Errorf("%s: %q", name, text)
		}
	}
}
