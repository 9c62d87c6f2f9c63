package plan

import (
	"fmt"
	"slices"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// TestDifferences: what is compared field by field names each field that differs, and no other.
func TestDifferences(t *testing.T) {
	routes := func(virtualHosts string) (proto.Message, string) {
		return &routev3.RouteConfiguration{}, `{"name": "80", "virtualHosts": [` + virtualHosts + `]}`
	}
	host := func(name, routes string) string { return fmt.Sprintf(`{"name": %q, "routes": [%s]}`, name, routes) }
	to := func(prefix, cluster, timeout string) string {
		return fmt.Sprintf(`{"match": {"prefix": %q}, "route": {"cluster": %q, "timeout": %q}}`, prefix, cluster, timeout)
	}
	for _, c := range []struct {
		name, before, after string
		want                []string
	}{
		{"the same", host("a", to("/", "x", "1s")), host("a", to("/", "x", "1s")), nil},
		{"a timeout", host("a", to("/", "x", "1s")), host("a", to("/", "x", "2s")), []string{`virtual_hosts[a].routes[0].route.timeout "1s" "2s"`}},
		{"a route before", host("a", to("/", "x", "1s")), host("a", to("/b", "x", "1s")+","+to("/", "x", "1s")), []string{
			`virtual_hosts[a].routes[0]  {"match":{"prefix":"/b"},"route":{"cluster":"x","timeout":"1s"}}`}},
		{"a route gone", host("a", to("/b", "x", "1s")+","+to("/", "x", "1s")), host("a", to("/", "x", "1s")), []string{
			`virtual_hosts[a].routes[0] {"match":{"prefix":"/b"},"route":{"cluster":"x","timeout":"1s"}} `}},
		{"by name", host("a", to("/", "x", "1s")) + "," + host("b", ""), host("c", "") + "," + host("a", to("/", "y", "1s")), []string{
			`virtual_hosts[c]  {"name":"c"}`, `virtual_hosts[a].routes[0].route.cluster "x" "y"`, `virtual_hosts[b] {"name":"b"} `}},
		{"order", host("a", "") + "," + host("b", ""), host("b", "") + "," + host("a", ""), []string{`virtual_hosts(order) ["a","b"] ["b","a"]`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, text := routes(c.before)
			after, other := routes(c.after)
			for m, text := range map[proto.Message]string{before: text, after: other} {
				if err := protojson.Unmarshal([]byte(text), m); err != nil {
					t.Fatal(err)
				}
			}
			wants(t, before, after, c.want...)
		})
	}
}

func wants(t *testing.T, before, after proto.Message, want ...string) {
	t.Helper()
	var got []string
	for _, d := range Differences(before, after) {
		got = append(got, fmt.Sprintf("%s %s %s", d.Path, d.Before, d.After))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// TestDifferencesInAny: an Any is seen through, one of an unknown type is its bytes.
func TestDifferencesInAny(t *testing.T) {
	listener := func(a *anypb.Any) *listenerv3.Listener {
		return &listenerv3.Listener{FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			Name: "http", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: a}}}}}}
	}
	packed := func(prefix string) *anypb.Any {
		a, err := anypb.New(&hcmv3.HttpConnectionManager{StatPrefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	wants(t, listener(packed("a")), listener(packed("b")), `filter_chains[0].filters[http].typed_config.stat_prefix "a" "b"`)
	strange := func(n int) *anypb.Any {
		return &anypb.Any{TypeUrl: "type.googleapis.com/example.Unknown", Value: make([]byte, n)}
	}
	wants(t, listener(strange(1)), listener(strange(2)), `filter_chains[0].filters[http].typed_config "(1 bytes)" "(2 bytes)"`)
	wants(t, listener(strange(1)), listener(strange(1)))
}

// TestDifferencesOfMetadata: what has no schema is compared key by key.
func TestDifferencesOfMetadata(t *testing.T) {
	meta := func(text string) *corev3.Node {
		n := &corev3.Node{}
		if err := protojson.Unmarshal([]byte(`{"metadata": `+text+`}`), n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	wants(t, meta(`{"a": "1", "b": [1]}`), meta(`{"a": "2", "b": [1], "c": true}`), `metadata.fields[a] "1" "2"`, `metadata.fields[c]  true`)
}
