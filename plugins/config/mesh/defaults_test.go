package mesh

import (
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
)

// TestDefaultsByName says each value that istiod has without a mesh file, so that none changes
// unnoticed.
func TestDefaultsByName(t *testing.T) {
	b, err := protojson.Marshal(Defaults())
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ field, want string }{
		{"connectTimeout", `"10s"`},
		{"proxyListenPort", `15001`},
		{"proxyInboundListenPort", `15006`},
		{"defaultConfig.proxyAdminPort", `15000`},
		{"defaultConfig.statusPort", `15020`},
		{"dnsRefreshRate", `"60s"`},
		{"protocolDetectionTimeout", `"0s"`},
		{"enableAutoMtls", `true`},
		{"outboundTrafficPolicy", `{"mode":"ALLOW_ANY"}`},
		{"inboundTrafficPolicy", `{}`},
		{"localityLbSetting", `{"enabled":true}`},
		{"ingressControllerMode", `"STRICT"`},
		{"ingressClass", `"istio"`},
		{"ingressService", `"istio-ingressgateway"`},
		{"trustDomain", `"cluster.local"`},
		{"rootNamespace", `"istio-system"`},
		{"defaultServiceExportTo", `["*"]`},
		{"defaultVirtualServiceExportTo", `["*"]`},
		{"defaultDestinationRuleExportTo", `["*"]`},
		{"enableTracing", `true`},
		{"enablePrometheusMerge", `true`},
		{"defaultConfig.discoveryAddress", `"istiod.istio-system.svc:15012"`},
		{"defaultConfig.drainDuration", `"45s"`},
		{"defaultConfig.terminationDrainDuration", `"5s"`},
		{"defaultConfig.statNameLength", `189`},
		{"defaultConfig.serviceCluster", `"istio-proxy"`},
		{"extensionProviders", `[{"name":"prometheus","prometheus":{}},{"name":"stackdriver","stackdriver":{}},` +
			`{"envoyFileAccessLog":{"path":"/dev/stdout"},"name":"envoy"}]`},
	} {
		var at any = all
		for name := range strings.SplitSeq(c.field, ".") {
			at = at.(map[string]any)[name]
		}
		got, err := json.Marshal(at)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != c.want {
			t.Errorf("%s: %s, want %s", c.field, got, c.want)
		}
	}
}
