package istio

import (
	"slices"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	jwt "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	networking "istio.io/api/networking/v1alpha3"
	securityv1 "istio.io/api/security/v1beta1"
	typev1 "istio.io/api/type/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authn"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

const (
	strict     = securityv1.PeerAuthentication_MutualTLS_STRICT
	permissive = securityv1.PeerAuthentication_MutualTLS_PERMISSIVE
	disable    = securityv1.PeerAuthentication_MutualTLS_DISABLE
)

// peersOf is a policy for the workload of sidecarID, with modes of ports.
func peersOf(mode securityv1.PeerAuthentication_MutualTLS_Mode, ports map[uint32]securityv1.PeerAuthentication_MutualTLS_Mode) *securityv1.PeerAuthentication {
	out := &securityv1.PeerAuthentication{
		Selector:      &typev1.WorkloadSelector{MatchLabels: map[string]string{"app": "db"}},
		Mtls:          &securityv1.PeerAuthentication_MutualTLS{Mode: mode},
		PortLevelMtls: map[uint32]*securityv1.PeerAuthentication_MutualTLS{},
	}
	for p, m := range ports {
		out.PortLevelMtls[p] = &securityv1.PeerAuthentication_MutualTLS{Mode: m}
	}
	return out
}

// chainsAt says what chains a port has: for which bytes, and whether they open mutual TLS.
func chainsAt(l *listenerv3.Listener, port uint32) []string {
	var out []string
	for _, c := range l.FilterChains {
		m := c.GetFilterChainMatch()
		if m.GetDestinationPort().GetValue() != port {
			continue
		}
		text := c.Name + " " + m.GetTransportProtocol()
		if c.TransportSocket != nil {
			text += " mutual"
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

// A port that no service names has chains of its own where the workload's policy says what it
// takes, even if it says what it says of all ports.
func TestPortsThatOnlyPoliciesName(t *testing.T) {
	w := newWorld(t)
	s := service("db.example.com", &sdk.Port{Number: 5432, Name: "tcp-db", Protocol: "TCP", Target: 5433})
	e := &sdk.Endpoint{
		Host: "db.example.com", Namespace: "default", PortName: "tcp-db", ServicePort: 5432, Port: 5433, Address: "10.9.9.9",
		Labels: map[string]string{"app": "db"},
	}
	w.commit(rows(state.Services, sdk.ServiceRow(s)), rows(state.Endpoints, sdk.EndpointRow(e)))
	w.attach(1, proxy(sidecarID, nil, nil))
	all := func(port uint32) []string { return chainsAt(w.listener(1, listener.VirtualInbound), port) }
	w.commit(rows(config.PeerAuthentications, resource("default/p", peersOf(strict, map[uint32]securityv1.PeerAuthentication_MutualTLS_Mode{
		5433: disable, 9000: disable, 9001: strict, 9002: permissive,
	}))))
	const tcp, http = "virtualInbound", "virtualInbound-catchall-http"
	for port, want := range map[uint32][]string{
		0:    {tcp + " tls mutual", http + " tls mutual"},
		5433: {"0.0.0.0_5433 raw_buffer"},
		9000: {tcp + " raw_buffer", http + " raw_buffer"},
		9001: {tcp + " tls mutual", http + " tls mutual"},
		9002: {tcp + " raw_buffer", tcp + " tls", tcp + " tls mutual", http + " raw_buffer", http + " tls mutual"},
		9003: nil,
	} {
		if got := all(port); !slices.Equal(got, want) {
			t.Errorf("port %d: %q, want %q", port, got, want)
		}
	}
	http9000 := chainAt(&listenerv3.Listener{FilterChains: slices.DeleteFunc(w.listener(1, listener.VirtualInbound).FilterChains,
		func(c *listenerv3.FilterChain) bool { return c.Name != http })}, 9000)
	route := filter(t, http9000, &hcm.HttpConnectionManager{}).GetRouteConfig()
	if r := route.GetVirtualHosts()[0]; route.Name != "InboundPassthroughCluster" || r.Name != "inbound|http|0" {
		t.Errorf("%s, %s", route.Name, r.Name)
	}
	w.commit(rows(config.Sidecars, resource("default/s", &networking.Sidecar{Ingress: []*networking.IstioIngressListener{{
		Port: &networking.SidecarPort{Number: 9000, Protocol: "TCP", Name: "tcp"}, DefaultEndpoint: "127.0.0.1:9000",
	}}})))
	if got := all(9000); len(got) != 1 || strings.HasPrefix(got[0], tcp) {
		t.Errorf("a port that the Sidecar names: %q", got)
	}
	if got := all(5433); !slices.Equal(got, []string{tcp + " raw_buffer", http + " raw_buffer"}) {
		t.Errorf("a port that it doesn't name: %q", got)
	}
}

// Rules for the same issuer count in the order of their policies: the namespace's before the
// mesh's.
func TestOrderOfTokenRules(t *testing.T) {
	w := newWorld(t)
	rule := func(issuer, header string) *securityv1.RequestAuthentication {
		return &securityv1.RequestAuthentication{JwtRules: []*securityv1.JWTRule{{Issuer: issuer, Jwks: `{"keys":[]}`, OutputPayloadToHeader: header}}}
	}
	w.commit(rows(config.RequestAuthentications, resource("istio-system/a", rule("same", "mesh")), resource("default/b", rule("same", "own")),
		resource("default/c", rule("first", "other"))))
	w.attach(1, proxy(sidecarID, nil, nil))
	var got []string
	m := filter(t, chainNamed(w.listener(1, listener.VirtualInbound), "virtualInbound-catchall-http"), &hcm.HttpConnectionManager{})
	for _, f := range m.HttpFilters {
		if f.Name == authn.TokenFilter {
			all := read(t, f.GetTypedConfig().Value, &jwt.JwtAuthentication{})
			for _, name := range []string{"origins-0", "origins-1", "origins-2"} {
				got = append(got, all.Providers[name].GetForwardPayloadHeader())
			}
		}
	}
	if want := []string{"other", "own", "mesh"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func chainNamed(l *listenerv3.Listener, name string) *listenerv3.FilterChain {
	i := slices.IndexFunc(l.FilterChains, func(c *listenerv3.FilterChain) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return l.FilterChains[i]
}

// Endpoints are marked by the nearest settings of TLS: those of a subset or port that say nothing
// of it leave the rule's.
func TestTLSOfEndpoints(t *testing.T) {
	off, mutual := &networking.ClientTLSSettings{}, &networking.ClientTLSSettings{Mode: networking.ClientTLSSettings_ISTIO_MUTUAL}
	at80 := func(tls *networking.ClientTLSSettings) []*networking.TrafficPolicy_PortTrafficPolicy {
		return []*networking.TrafficPolicy_PortTrafficPolicy{{Port: &networking.PortSelector{Number: 80}, Tls: tls}}
	}
	type policy = networking.TrafficPolicy
	for _, c := range []struct {
		name           string
		rule, subset   *policy
		whole, subsets bool
	}{
		{"nothing is said", nil, nil, true, true},
		{"the rule", &policy{Tls: off}, nil, false, false},
		{"the subset", nil, &policy{Tls: off}, true, false},
		{"the subset says something else", &policy{Tls: off}, &policy{LoadBalancer: &networking.LoadBalancerSettings{}}, false, false},
		{"the port", &policy{Tls: mutual, PortLevelSettings: at80(off)}, nil, false, false},
		{"the port says nothing", &policy{Tls: off, PortLevelSettings: at80(nil)}, nil, false, false},
		{"the port of the subset", &policy{Tls: off}, &policy{PortLevelSettings: at80(mutual)}, false, true},
	} {
		w := newWorld(t)
		w.commit(web("10.1.0.1")...)
		w.commit(rows(config.DestinationRules, resource("default/r", &networking.DestinationRule{
			Host: "web", TrafficPolicy: c.rule, Subsets: []*networking.Subset{{Name: "v1", TrafficPolicy: c.subset}},
		})))
		w.attach(1, proxy(sidecarID, nil, nil))
		marked := func(cluster string) bool {
			_, ok := w.assignment(1, cluster).Endpoints[0].LbEndpoints[0].GetMetadata().GetFilterMetadata()["envoy.transport_socket_match"]
			return ok
		}
		if got := marked(webCluster); got != c.whole {
			t.Errorf("%s: %v, want %v", c.name, got, c.whole)
		}
		if got := marked("outbound|80|v1|" + webHost); got != c.subsets {
			t.Errorf("%s, subset: %v, want %v", c.name, got, c.subsets)
		}
	}
}

// Names that proxies look up are marked as addresses are.
func TestTLSOfNames(t *testing.T) {
	w := newWorld(t)
	s := service("names.example.com", &sdk.Port{Number: 80, Name: "http", Protocol: "HTTP"})
	s.Resolution = pb.ServiceResolutionDns
	e := &sdk.Endpoint{Host: s.Host, Namespace: "default", PortName: "http", ServicePort: 80, Port: 80, Address: "a.example.com", TlsMode: "istio"}
	w.commit(rows(state.Services, sdk.ServiceRow(s)), rows(state.Endpoints, sdk.EndpointRow(e)))
	w.attach(1, proxy(sidecarID, nil, nil))
	marked := func() bool {
		a := w.cluster(1, "outbound|80||names.example.com").GetLoadAssignment().GetEndpoints()[0].LbEndpoints[0]
		_, ok := a.GetMetadata().GetFilterMetadata()["envoy.transport_socket_match"]
		return ok
	}
	if !marked() {
		t.Error("not marked without a rule")
	}
	w.commit(rows(config.DestinationRules, resource("default/r", &networking.DestinationRule{Host: s.Host, TrafficPolicy: &networking.TrafficPolicy{
		Tls: &networking.ClientTLSSettings{Mode: networking.ClientTLSSettings_SIMPLE},
	}})))
	if marked() {
		t.Error("marked though the rule says something else")
	}
}
