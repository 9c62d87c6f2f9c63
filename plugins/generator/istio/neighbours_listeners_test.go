package istio

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/envoyrules"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// younger makes a row of evil's younger than demo's.
func younger(r *pb.Row) *pb.Row {
	r.Created = 100
	return r
}

func evilGateway(t *testing.T, server string) *pb.TableRows {
	return rows(config.Gateways, younger(spec(t, "evil/gw", &networking.Gateway{}, `{selector: {istio: gateway}, servers: [`+server+`]}`)))
}

// tlsHost is a service for TLS that has no address of its own: what goes to it shares a listener
// with all others of its port.
func tlsHost(host, namespace string, created int64) *pb.Row {
	r := sdk.ServiceRow(&sdk.Service{Host: host, Namespace: namespace, Name: host, Ports: []*sdk.Port{{Number: 443, Name: "tls", Protocol: "TLS"}}})
	r.Created = created
	return r
}

// TestGatewaysThatShareAListener: the chain of demo's Gateway stays where evil's asks for the same,
// or for what Envoy refuses, and evil is told.
func TestGatewaysThatShareAListener(t *testing.T) {
	const tls = `{port: {number: 443, name: tls, protocol: TLS}, tls: {mode: PASSTHROUGH}, hosts: [`
	const second = "demo/gw asks for the same, and comes first; let one of them ask for other names, or listen elsewhere "
	for _, c := range []struct {
		name string
		rows []*pb.TableRows
		why  string
	}{
		{"passed through and terminated", []*pb.TableRows{
			evilGateway(t, tls+`"*.example"]}`),
			rows(config.VirtualServices, younger(spec(t, "evil/v", &networking.VirtualService{}, `
hosts: [a.example]
gateways: [evil/gw]
tls: [{match: [{sniHosts: [a.example]}], route: [{destination: {host: b}}]}]`))),
		}, second + "[{networking.istio.io/VirtualService evil/v}]"},
		{"in capitals", []*pb.TableRows{
			evilGateway(t, tls+`"*.example"]}`),
			rows(config.VirtualServices, younger(spec(t, "evil/v", &networking.VirtualService{}, `
hosts: [A.Example]
gateways: [evil/gw]
tls: [{match: [{sniHosts: [A.Example]}], route: [{destination: {host: b}}]}]`))),
		}, second + "[{networking.istio.io/VirtualService evil/v}]"},
		{"a wildcard within a label", []*pb.TableRows{
			evilGateway(t, tls+`"*.example"]}`),
			rows(config.VirtualServices, younger(spec(t, "evil/v", &networking.VirtualService{}, `
hosts: ["*.example"]
gateways: [evil/gw]
tls: [{match: [{sniHosts: ["*b.example"]}], route: [{destination: {host: b}}]}]`))),
		}, `server name "*b.example"`},
		{"the same name in two cases", []*pb.TableRows{
			evilGateway(t, tls+`"*.example"]}`),
			rows(config.VirtualServices, younger(spec(t, "evil/v", &networking.VirtualService{}, `
hosts: ["*.example"]
gateways: [evil/gw]
tls: [{match: [{sniHosts: [b.example, B.example]}], route: [{destination: {host: b}}]}]`))),
		}, ""},
		{"of virtual services of another namespace", []*pb.TableRows{
			evilGateway(t, `{port: {number: 443, name: other, protocol: HTTPS}, tls: {mode: SIMPLE, credentialName: c}, hosts: ["evil/a.example"]}`),
		}, second + "[{networking.istio.io/Gateway evil/gw}]"},
		{"terminated in capitals", []*pb.TableRows{
			evilGateway(t, `{port: {number: 443, name: other, protocol: HTTPS}, tls: {mode: SIMPLE, credentialName: c}, hosts: [A.EXAMPLE]}`),
		}, "demo/gw has host A.EXAMPLE at port 443"},
		{"any address by its name", []*pb.TableRows{
			evilGateway(t, `{port: {number: 443, name: other, protocol: HTTPS}, bind: 0.0.0.0, tls: {mode: SIMPLE, credentialName: c}, hosts: [a.example]}`),
		}, second + "[{networking.istio.io/Gateway evil/gw}]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			demo := func(credential string) *pb.TableRows {
				return rows(config.Gateways, spec(t, "demo/gw", &networking.Gateway{}, `
selector: {istio: gateway}
servers: [{port: {number: 443, name: https, protocol: HTTPS}, tls: {mode: SIMPLE, credentialName: `+credential+`}, hosts: [a.example]}]`))
			}
			w.commit(rows(state.Services, serviceOf("hello.example", "demo", "10.96.0.1"), serviceOf("b.evil.svc.cluster.local", "evil", "10.96.0.2")),
				demo("c"))
			w.attach(2, proxy("router~10.9.9.8~gw.default~default.svc.cluster.local", nil, map[string]any{"LABELS": map[string]any{"istio": "gateway"}}))
			chain := func() []byte {
				l := read(t, w.get(2, encode.ListenerType)["0.0.0.0_443"], &listenerv3.Listener{})
				if err := envoyrules.CheckAll(l); err != nil {
					t.Errorf("the listener: %v", err)
				}
				return encode.Bytes(l.FilterChains[0])
			}
			before := chain()
			w.commit(c.rows...)
			if !bytes.Equal(chain(), before) {
				t.Error("demo's chain is no longer what it was")
			}
			if told := w.out.since(); c.why == "" && told != "" || !strings.Contains(told, c.why) {
				t.Errorf("told %q, want %q", told, c.why)
			}
			w.commit(demo("another"))
			if !bytes.Contains(chain(), []byte("another")) {
				t.Error("demo's edit doesn't arrive")
			}
		})
	}
}

// TestNamesThatSeveralChainsAskFor: a chain keeps the names that nobody else has, and who loses one
// is told which, and to whom.
func TestNamesThatSeveralChainsAskFor(t *testing.T) {
	w := newWorld(t)
	w.commit(rows(state.Services, serviceOf("a.demo.svc.cluster.local", "demo", "10.96.0.1"), serviceOf("b.demo.svc.cluster.local", "demo", "10.96.0.2")),
		rows(config.Gateways, spec(t, "demo/gw", &networking.Gateway{}, `
selector: {istio: gateway}
servers:
- {port: {number: 443, name: tls, protocol: TLS}, tls: {mode: PASSTHROUGH}, hosts: ["*.example"]}
- {port: {number: 443, name: https, protocol: HTTPS}, tls: {mode: SIMPLE, credentialName: c}, hosts: [a.example, f.example]}
- {port: {number: 443, name: lost, protocol: HTTPS}, tls: {mode: SIMPLE, credentialName: c}, hosts: [B.example]}`)),
		rows(config.VirtualServices, spec(t, "demo/first", &networking.VirtualService{}, `
hosts: ["*.example"]
gateways: [gw]
tls:
- {match: [{sniHosts: [a.example, b.example]}], route: [{destination: {host: a}}]}
- {match: [{sniHosts: [b.example, c.example]}], route: [{destination: {host: b}}]}`), younger(spec(t, "demo/second", &networking.VirtualService{}, `
hosts: ["*.example"]
gateways: [gw]
tls: [{match: [{sniHosts: [A.example, d.example]}], route: [{destination: {host: b}}]}]`)),
			spec(t, "demo/requests", &networking.VirtualService{}, `{hosts: [a.example], gateways: [gw], http: [{route: [{destination: {host: a}}]}]}`),
			spec(t, "demo/others", &networking.VirtualService{}, `{hosts: [f.example], gateways: [gw], http: [{route: [{destination: {host: a}}]}]}`)))
	w.attach(2, proxy("router~10.9.9.8~gw.default~default.svc.cluster.local", nil, map[string]any{"LABELS": map[string]any{"istio": "gateway"}}))
	l := read(t, w.get(2, encode.ListenerType)["0.0.0.0_443"], &listenerv3.Listener{})
	if err := envoyrules.CheckAll(l); err != nil {
		t.Error(err)
	}
	var got []string
	for _, c := range l.FilterChains {
		got = append(got, strings.Join(c.GetFilterChainMatch().GetServerNames(), " "))
	}
	if want := []string{"a.example b.example", "c.example", "d.example", "f.example"}; !slices.Equal(got, want) {
		t.Errorf("chains for %q, want %q", got, want)
	}
	told := w.out.since()
	const first = "VirtualService demo/first at Gateway demo/gw asks for the same, and comes first; let one of them ask for other names, or listen elsewhere ["
	for _, want := range []string{
		"filter chain of server https (HTTPS) of Gateway demo/gw at 0.0.0.0_443: server https (HTTPS) of Gateway demo/gw doesn't get a.example: " + first +
			"{networking.istio.io/Gateway demo/gw} {networking.istio.io/VirtualService demo/requests}]",
		"server lost (HTTPS) of Gateway demo/gw doesn't get B.example: " + first + "{networking.istio.io/Gateway demo/gw}]",
		"VirtualService demo/second at Gateway demo/gw doesn't get A.example: " + first + "{networking.istio.io/VirtualService demo/second}]",
	} {
		if !strings.Contains(told, want) {
			t.Errorf("told\n%s\nwithout %q", told, want)
		}
	}
	if n := strings.Count(told, "filter chain of"); n != 3 {
		t.Errorf("%d filter chains are told of:\n%s", n, told)
	}
}

// TestHostsThatShareAListener is TestGatewaysThatShareAListener for what sidecars send: hosts for
// TLS without addresses of their own stand in one listener.
func TestHostsThatShareAListener(t *testing.T) {
	for _, c := range []struct {
		name string
		rows *pb.TableRows
	}{
		{"host in capitals", rows(state.Services, tlsHost("HELLO.example", "evil", 2))},
		{"host with a wildcard within a label", rows(state.Services, tlsHost("*evil.example", "evil", 2))},
		{"route by a name with such a wildcard", rows(config.VirtualServices, younger(spec(t, "evil/v", &networking.VirtualService{}, `
hosts: [other.example]
tls: [{match: [{sniHosts: ["a*.example"]}], route: [{destination: {host: other.example}}]}]`)))},
		{"route by somebody else's name, in capitals", rows(config.VirtualServices, younger(spec(t, "evil/v", &networking.VirtualService{}, `
hosts: [other.example]
tls: [{match: [{sniHosts: [Hello.Example, hello.example]}], route: [{destination: {host: other.example}}]}]`)))},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.commit(rows(state.Services, tlsHost("hello.example", "demo", 1), tlsHost("other.example", "evil", 2)))
			w.attach(1, proxy(sidecarID, nil, nil))
			chain := func(name string) []byte {
				l := read(t, w.get(1, encode.ListenerType)["0.0.0.0_443"], &listenerv3.Listener{})
				if err := envoyrules.CheckAll(l); err != nil {
					t.Errorf("the listener: %v", err)
				}
				for _, c := range l.FilterChains {
					if len(c.GetFilterChainMatch().GetServerNames()) > 0 && c.FilterChainMatch.ServerNames[0] == name {
						return encode.Bytes(c)
					}
				}
				return nil
			}
			before := chain("hello.example")
			w.commit(c.rows)
			if now := chain("hello.example"); before == nil || !bytes.Equal(now, before) {
				t.Errorf("demo's chain is no longer what it was: %d bytes, then %d", len(before), len(now))
			}
			w.commit(rows(state.Services, tlsHost("next.example", "demo", 3)))
			if chain("next.example") == nil {
				t.Error("demo's next host doesn't arrive")
			}
		})
	}
}
