package mcs

import (
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/mcs"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

const host, all = "web.shop.svc.cluster.local", "web.shop.svc.clusterset.local"

func at(cluster, address string) *sdk.Row {
	row := sdk.EndpointRow(&pb.Endpoint{Host: host, Namespace: "shop", PortName: "http", ServicePort: 80, Address: address, Port: 8080, Cluster: cluster})
	row.Key += "#" + cluster
	return row
}

func of(cluster string, addresses ...string) *sdk.Row {
	return (&mcs.Service{Cluster: cluster, Namespace: "shop", Name: "web", Host: host, Addresses: addresses}).Row()
}

// TestClusterSet: an import makes a service with the addresses of each cluster; exports of clusters
// that import it say which endpoints are for all. All of it goes as it came, whatever goes first.
func TestClusterSet(t *testing.T) {
	h := plugintest.Start(t, Plugin(), nil)
	service := sdk.ServiceRow(&pb.Service{
		Host: host, Namespace: "shop", Name: "web", Registry: "Kubernetes", Cluster: "west",
		Addresses: []string{"10.0.0.1"}, Ports: []*pb.Port{{Number: 80, Name: "http"}},
	})
	service.Created = 7
	is := func(what, want string) {
		t.Helper()
		var got []string
		for _, r := range h.Rows(state.Services) {
			s, err := sdk.ServiceOf(r)
			if err != nil || r.Created != 7 || r.Key != "shop/"+all || len(s.Ports) != 1 || s.Host != all {
				t.Fatalf("%s: %v, %v", what, s, err)
			}
			got = append(got, s.Addresses[0]+" west="+s.ClusterAddresses["west"]+" east="+s.ClusterAddresses["east"])
		}
		var endpoints []string
		for _, r := range h.Rows(state.Endpoints) {
			e, err := sdk.EndpointOf(r)
			if err != nil || e.Host != all || !strings.HasPrefix(r.Key, "shop/"+all+"/http/") {
				t.Fatalf("%s: %s %v, %v", what, r.Key, e, err)
			}
			text := e.Address
			if e.SameCluster {
				text += " for " + e.Cluster
			}
			endpoints = append(endpoints, text)
		}
		slices.Sort(endpoints)
		if text := strings.Join(append(got, endpoints...), "; "); text != want {
			t.Errorf("%s: %s, want %s", what, text, want)
		}
	}
	set := func(table string, rows ...*sdk.Row) { h.WaitDone(h.Update(table, rows)) }
	gone := func(table, key string) { h.WaitDone(h.Update(table, nil, key)) }

	set(mcs.Imports, of("west", "10.9.0.1"))
	is("an import without a service", "")
	set(state.Services, service)
	set(state.Endpoints, at("west", "10.1.0.1"), at("east", "10.2.0.1"))
	is("an import", "10.9.0.1 west=10.9.0.1 east=; 10.1.0.1 for west; 10.2.0.1 for east")
	set(mcs.Exports, of("east"), of("west"))
	is("exports", "10.9.0.1 west=10.9.0.1 east=; 10.1.0.1; 10.2.0.1 for east")
	set(mcs.Imports, of("east", "10.9.0.2", "fd00::2"))
	is("two imports", "10.9.0.2 west=10.9.0.1 east=10.9.0.2,fd00::2; 10.1.0.1; 10.2.0.1")
	gone(mcs.Exports, "east/shop/web")
	is("one export", "10.9.0.2 west=10.9.0.1 east=10.9.0.2,fd00::2; 10.1.0.1; 10.2.0.1 for east")
	gone(state.Endpoints, at("west", "10.1.0.1").Key)
	is("an endpoint less", "10.9.0.2 west=10.9.0.1 east=10.9.0.2,fd00::2; 10.2.0.1 for east")
	gone(mcs.Imports, "east/shop/web")
	is("one import", "10.9.0.1 west=10.9.0.1 east=; 10.2.0.1 for east")
	gone(state.Services, "shop/"+host)
	is("no service", "")
	set(state.Services, service)
	gone(mcs.Imports, "west/shop/web")
	is("no import", "")
}

// TestReadme: the README's example is one.
func TestReadme(t *testing.T) {
	blocks, _ := readme.Example(t, 1)
	if !strings.Contains(blocks[0].Text, "builtin: registry/mcs") {
		t.Error(blocks)
	}
}
