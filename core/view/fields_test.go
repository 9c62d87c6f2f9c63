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

func TestSecretsOfFields(t *testing.T) {
	for _, c := range []struct {
		was, is any
	}{
		{map[string]any{"private_key": map[string]any{"inline_string": "KEY-1"}}, map[string]any{"private_key": map[string]any{"inline_string": "KEY-2"}}},
		{map[string]any{}, map[string]any{"tls": []any{map[string]any{"password": "KEY-1"}}}},
	} {
		d := &fieldLines{most: 8}
		d.compare("", c.was, c.is)
		if text := strings.Join(d.lines, "\n"); !strings.Contains(text, "(masked)") || strings.Contains(text, "KEY-") {
			t.Errorf("%q", text)
		}
	}
}
