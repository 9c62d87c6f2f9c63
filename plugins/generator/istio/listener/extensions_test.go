package listener

import (
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	extensions "istio.io/api/extensions/v1alpha1"
	typev1 "istio.io/api/type/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authz"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/extension"
)

// extensionsAt are extensions for connections, each for a port.
func extensionsAt(t *testing.T, server bool, ports map[string]uint32) extension.List {
	t.Helper()
	var all []*extension.Extension
	for name, port := range ports {
		e, err := extension.New(&config.Extension{Meta: config.Meta{Namespace: "ns", Name: name}, Spec: &extensions.TrafficExtension{
			Match:        []*extensions.TrafficSelector{{Ports: []*typev1.PortSelector{{Number: port}}}},
			FilterConfig: &extensions.TrafficExtension_Wasm{Wasm: &extensions.WasmConfig{Url: "file:///x", Type: extensions.PluginType_NETWORK}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return extension.NewList(all, server, false)
}

// found are the names of a chain's filters, of extensions the last part.
func found(c *listenerv3.FilterChain) string {
	var out []string
	for _, f := range c.GetFilters() {
		out = append(out, f.Name[strings.LastIndex(f.Name, ".")+1:])
	}
	return strings.Join(out, " ")
}

// Requests are chosen by the port where the workload listens, connections by the service's.
func TestPortsOfExtensionsInbound(t *testing.T) {
	for protocol, want := range map[config.Protocol]string{config.HTTP: "target http_connection_manager", config.TCP: "service tcp_proxy"} {
		l := BuildInbound(Inbound{
			Ports: []Port{{Target: 8080, Number: 80, Host: "a", Protocol: protocol}},
			Proxy: Reporting{Extensions: extensionsAt(t, true, map[string]uint32{"service": 80, "target": 8080})},
		})
		if got := found(l.FilterChains[len(l.FilterChains)-1]); got != want {
			t.Errorf("%v: %s, want %s", protocol, got, want)
		}
	}
}

// Requests at a gateway are chosen by the port where it listens, connections by the one that its
// server names.
func TestPortsOfExtensionsAtGateways(t *testing.T) {
	l := BuildGateway(Gateway{
		Bind: Bind{"0.0.0.0", 8443}, Proxy: Reporting{Extensions: extensionsAt(t, false, map[string]uint32{"listener": 8443, "server": 443})},
		Chains: []GatewayChain{
			{Names: []string{"a"}, Route: "r", Protocol: config.HTTPS},
			{Names: []string{"b"}, Forward: ToCluster("c"), Port: 443, Protocol: config.TCP},
		},
	})
	for i, want := range []string{"listener http_connection_manager", "server tcp_proxy"} {
		if got := found(l.FilterChains[i]); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// What is passed on as the mesh's own TLS is judged by its receiver.
func TestPoliciesOfPassThrough(t *testing.T) {
	guards := NewGuards(authz.HTTP{}, authz.TCP{Rest: []*listenerv3.Filter{{Name: "rbac"}}}, nil)
	l := BuildGateway(Gateway{Guards: guards, Chains: []GatewayChain{
		{Names: []string{"a"}, Forward: ToCluster("c"), Protocol: config.TLS},
		{Names: []string{"b"}, Forward: ToCluster("c"), Protocol: config.TLS, Unguarded: true},
	}})
	for i, want := range []string{"rbac tcp_proxy", "tcp_proxy"} {
		if got := found(l.FilterChains[i]); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
