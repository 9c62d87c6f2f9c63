package kubernetes

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// TestEntrances: which listeners at which addresses of a Gateway are the entrance of a network.
func TestEntrances(t *testing.T) {
	for _, c := range []struct{ name, labels, class, addresses, listeners, want string }{
		{
			"the port for it", "", "x", "{type: IPAddress, value: 192.0.2.1}, {value: 192.0.2.2}",
			"{port: 15443, protocol: TLS, tls: {mode: Passthrough}}, {port: 80, protocol: HTTP}",
			"192.0.2.1:15443 192.0.2.2:15443",
		},
		{
			"a port of its own", "networking.istio.io/gatewayPort: '443'", "x", "{value: 192.0.2.1}",
			"{port: 15443, tls: {}}, {port: 443, tls: {}}", "192.0.2.1:443",
		},
		{
			"by its options", "", "x", "{value: 192.0.2.1}",
			"{port: 444, tls: {options: {gateway.istio.io/listener-protocol: auto-passthrough}}}, {port: 445, tls: {options: {a: b}}}",
			"192.0.2.1:444",
		},
		{"HBONE", "", "x", "{value: 192.0.2.1}", "{port: 15008, protocol: HBONE}", "192.0.2.1:15008"},
		{"without TLS", "", "x", "{value: 192.0.2.1}", "{port: 15443, protocol: TCP}", ""},
		{
			"names, and addresses of other kinds", "", "x",
			"{type: Hostname, value: gw.example}, {type: example.com/x, value: z}", "{port: 15443, tls: {}}",
			"gw.example:15443",
		},
		{"what stands for others", "", remoteClass, "{value: 192.0.2.1}", "{port: 15443, tls: {}}", "192.0.2.1:15443"},
		{"of another definition", "", "x", "{value: [192.0.2.1]}", "{port: 15443, tls: {}}", ""},
		{"without addresses", "", "x", "", "{port: 15443, tls: {}}", ""},
	} {
		u := &unstructured.Unstructured{}
		text := "{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: gw, namespace: shop, labels: {topology.istio.io/network: far, " +
			c.labels +
			"}}, spec: {gatewayClassName: " + c.class + ", addresses: [" + c.addresses + "], listeners: [" + c.listeners + "]}}"
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		kept, err := leanGateway(u)
		if err != nil {
			t.Fatal(err)
		}
		g := kept.(*gateway)
		var got []string
		for key, row := range (&Config{Cluster: "east"}).entranceRows(g)[state.NetworkGateways] {
			at, ok := strings.CutPrefix(key, "east/shop/gw/")
			if e, err := sdk.EndpointOf(row); err != nil || !ok || e.Network != "far" || e.Cluster != "east" {
				t.Errorf("%s: %s %v %v", c.name, key, e, err)
			}
			got = append(got, at)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, not %q", c.name, got, c.want)
		}
		if there := (&Config{Cluster: "west", Place: kube.Place{Remote: "a/b/c"}}).entrances(g); c.class == remoteClass && len(there) > 0 {
			t.Errorf("%s: in another cluster it counts, too", c.name)
		}
		g.Labels = nil
		if (&Config{}).entranceRows(g) != nil {
			t.Errorf("%s: of no network", c.name)
		}
	}
}
