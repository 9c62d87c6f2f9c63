package istio

import (
	"maps"
	"slices"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/workload"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// TestServiceOfSeveralClusters: a proxy dials the address that a service has in its own cluster,
// whichever row comes first, and what comes and goes of another cluster makes nothing for proxies
// of others.
func TestServiceOfSeveralClusters(t *testing.T) {
	s := &sdk.Service{
		Host: "db.default.svc.cluster.local", Namespace: "default", Registry: "Kubernetes", Addresses: []string{"10.0.0.1"},
		Ports: []*sdk.Port{{Number: 5432, Name: "tcp", Protocol: "TCP"}},
	}
	there := func(cluster, address string) *sdk.Row {
		row := &sdk.Service{Host: s.Host, Namespace: s.Namespace, ClusterAddresses: map[string]string{cluster: address}}
		return &sdk.Row{Key: sdk.ServiceKey(s.Namespace, s.Host) + "/" + cluster, Payload: row.AppendTo(nil)}
	}
	w := newWorld(t)
	w.commit(rows(state.ClusterServices, there("east", "10.1.0.1")))
	for i, cluster := range []string{"west", "east", "north"} {
		w.attach(uint64(i+1), proxy(sidecarID, nil, map[string]any{"CLUSTER_ID": cluster}))
	}
	is := func(what string, want ...string) {
		t.Helper()
		for i, address := range want {
			var found []string
			for _, body := range w.get(uint64(i+1), encode.ListenerType) {
				var l listenerv3.Listener
				if err := proto.Unmarshal(body, &l); err != nil {
					t.Fatal(err)
				}
				if a := l.GetAddress().GetSocketAddress(); a.GetPortValue() == 5432 {
					found = append(found, a.GetAddress())
				}
			}
			if !slices.Equal(found, slices.DeleteFunc([]string{address}, func(s string) bool { return s == "" })) {
				t.Errorf("%s: proxy %d dials %v, not %s", what, i+1, found, address)
			}
		}
	}
	is("no service yet", "", "", "")
	w.commit(rows(state.Services, sdk.ServiceRow(s)))
	is("the service", "10.0.0.1", "10.1.0.1", "10.0.0.1")
	w.commit(rows(state.ClusterServices, there("east", "10.1.0.1"), there("north", "10.2.0.1")))
	is("a third cluster", "10.0.0.1", "10.1.0.1", "10.2.0.1")
	before := maps.Clone(w.get(1, encode.ListenerType))
	w.commit(rows(state.ClusterServices, there("east", "10.1.0.9"), there("north", "10.2.0.1")))
	is("another address", "10.0.0.1", "10.1.0.9", "10.2.0.1")
	if !maps.EqualFunc(before, w.get(1, encode.ListenerType), slices.Equal) {
		t.Error("the proxy of the first cluster has other listeners")
	}
	gone := func(table string, keys ...string) { w.commit(&pb.TableRows{Table: table, Deletes: keys}) }
	gone(state.ClusterServices, "default/db.default.svc.cluster.local/east", "default/db.default.svc.cluster.local/north")
	is("one cluster", "10.0.0.1", "10.0.0.1", "10.0.0.1")
	gone(state.Services, "default/db.default.svc.cluster.local")
	is("none", "", "", "")
}

// TestGatewaysOfSeveralClusters: a gateway of the same name in each cluster is that of each one's
// network.
func TestGatewaysOfSeveralClusters(t *testing.T) {
	w := newWorld(t)
	gateway := func(network, cluster, address string) *sdk.Service {
		return &sdk.Service{
			Host: "gw", Namespace: "default", Labels: map[string]string{workload.NetworkLabel: network}, Ports: []*sdk.Port{{Number: 15443}},
			ExternalAddresses: map[string]string{cluster: address},
		}
	}
	there := gateway("b", "east", "9.9.9.9")
	e := &sdk.Endpoint{
		Host: "web.default.svc.cluster.local", Namespace: "default", PortName: "http", ServicePort: 80,
		Address: "10.2.0.1", Port: 8080, Network: "b", TlsMode: "istio",
	}
	w.commit(append(web("10.1.0.1"), rows(state.Endpoints, sdk.EndpointRow(e)), rows(state.Services, sdk.ServiceRow(gateway("a", "west", "8.8.8.8"))),
		rows(state.ClusterServices, &sdk.Row{Key: "default/gw/east", Payload: there.AppendTo(nil)}))...)
	w.attach(1, proxy(sidecarID, nil, map[string]any{"NETWORK": "a"}))
	got := addresses(t, w.get(1, encode.EndpointType, webCluster)[webCluster])
	slices.Sort(got)
	if want := []string{"10.1.0.1", "9.9.9.9"}; !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}
