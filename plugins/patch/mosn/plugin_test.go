package mosn

import (
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
)

func TestConformance(t *testing.T) {
	plugintest.Conform(t, plugintest.Suite{Kind: "patch"}, plugintest.Memory(Plugin()))
}

func TestListeners(t *testing.T) {
	for name, c := range map[string]struct{ given, want string }{
		"a listener of a service": {
			`{"name":"0.0.0.0_80","bindToPort":false,"filterChains":[{"name":"http",` +
				`"filterChainMatch":{"applicationProtocols":["h2c"]}}],"defaultFilterChain":{"name":"tcp"}}`,
			`{"name":"0.0.0.0_80","bindToPort":false,"deprecatedV1":{"bindToPort":false},"filterChains":[{"name":"tcp"}]}`,
		},
		"chains by server name, and one for the rest": {
			`{"name":"a","bindToPort":false,"filterChains":[{"name":"sni","filterChainMatch":{"serverNames":["x"]}},{"name":"rest"}]}`,
			`{"name":"a","bindToPort":false,"deprecatedV1":{"bindToPort":false},"filterChains":[{"name":"rest"}]}`,
		},
		"chains by server name alone": {
			`{"name":"a","filterChains":[{"name":"x","filterChainMatch":{"serverNames":["x"]}},{"name":"y","filterChainMatch":{"serverNames":["y"]}}]}`,
			`{"name":"a","filterChains":[{"name":"x","filterChainMatch":{"serverNames":["x"]}}]}`,
		},
		"virtualOutbound": {`{"name":"virtualOutbound","useOriginalDst":true,"filterChains":[{"name":"hole"},{"name":"all"}]}`, ""},
		"virtualInbound": {
			`{"name":"virtualInbound","listenerFilters":[{"name":"envoy.filters.listener.original_dst"}],"filterChains":[{"name":"a"},{"name":"b"}]}`,
			"",
		},
		"one chain that is usable":    {`{"name":"a","filterChains":[{"name":"a"}]}`, ""},
		"one that opens its port":     {`{"name":"a","bindToPort":true,"filterChains":[{"name":"a"}]}`, ""},
		"one of a client's, no chain": {`{"name":"a"}`, ""},
	} {
		body, err := proto.Marshal(read(t, c.given))
		if err != nil {
			t.Fatal(err)
		}
		changed, removed, err := patch(nil, listenerType, nil, []sdk.Resource{{Name: "a", Body: body}})
		if err != nil || len(removed) > 0 || (len(changed) > 0) != (c.want != "") {
			t.Errorf("%s: %d changed, %v removed, %v", name, len(changed), removed, err)
			continue
		}
		for _, r := range changed {
			var got listenerv3.Listener
			if err := proto.Unmarshal(r.Body, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(read(t, c.want), &got, protocmp.Transform()); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	}
	if _, _, err := patch(nil, listenerType, nil, []sdk.Resource{{Name: "a", Body: []byte{1}}}); err == nil {
		t.Error("bytes that are no listener are taken")
	}
}

func read(t *testing.T, text string) *listenerv3.Listener {
	t.Helper()
	l := &listenerv3.Listener{}
	if err := protojson.Unmarshal([]byte(text), l); err != nil {
		t.Fatal(err)
	}
	return l
}
