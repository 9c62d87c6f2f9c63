package istio

import (
	"slices"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// TestDualStack: with dual stack each address of an endpoint has a listener where its service has
// none, and requests may name a service by each of its own.
func TestDualStack(t *testing.T) {
	for _, dual := range []bool{false, true} {
		w := newWorld(t)
		w.e = newEngine(Config{Domain: "cluster.local", DualStack: dual})
		peers := &pb.Service{
			Host: "peers.default.svc.cluster.local", Namespace: "default", Name: "peers", Registry: "Kubernetes",
			Headless: true, Resolution: pb.ServiceResolutionNone,
			Ports: []*pb.Port{{Number: 9000, Name: "tcp", Protocol: "TCP"}},
		}
		web := &pb.Service{
			Host: "web.default.svc.cluster.local", Namespace: "default", Name: "web", Registry: "Kubernetes", Addresses: []string{"10.96.0.1", "fd00:96::1"},
			Ports: []*pb.Port{{Number: 80, Name: "http", Protocol: "HTTP"}},
		}
		w.commit(rows(state.Services, sdk.ServiceRow(peers), sdk.ServiceRow(web)), rows(state.Endpoints, sdk.EndpointRow(&sdk.Endpoint{
			Host: peers.Host, Namespace: "default", PortName: "tcp", ServicePort: 9000, Address: "10.1.0.1", MoreAddresses: []string{"fd00::1"}, Port: 9000,
		})))
		w.attach(1, proxy(sidecarID, nil, map[string]any{"INSTANCE_IPS": "10.9.9.9,fd00::9"}))
		listeners := w.get(1, encode.ListenerType)
		if listeners["10.1.0.1_9000"] == nil || (listeners["fd00::1_9000"] != nil) != dual {
			t.Errorf("dual stack %v: the listeners of the headless service are others", dual)
		}
		domains := w.routes(1, "80").VirtualHosts
		has := func(domain string) bool {
			for _, v := range domains {
				if slices.Contains(v.Domains, domain) {
					return true
				}
			}
			return false
		}
		if !has("10.96.0.1") || has("[fd00:96::1]") != dual {
			t.Errorf("dual stack %v: the domains are %v", dual, domains)
		}
	}
}
