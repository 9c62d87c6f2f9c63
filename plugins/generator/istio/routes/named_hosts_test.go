package routes

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// TestNamesInANamespace: what all clients call hosts, and the label besides, is what each
// namespace's clients call them.
func TestNamesInANamespace(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	pick := func(list ...string) string { return list[rnd.IntN(len(list))] }
	labelled := 0
	for range 2000 {
		m := portMembers{full: map[string]bool{}}
		for range rnd.IntN(12) {
			host := pick("a", "b", "*", "a.ns1", "b.ns2.svc", "10.0.0.1", "::1", "x.example.com", "ns1", "")
			if rnd.IntN(3) > 0 || host == "" {
				host = fmt.Sprintf("%s.%s.svc.%s", pick("a", "b", "*", "c.d"), pick("ns1", "ns2", "a"), pick("cluster.local", "cluster.local", "other"))
			}
			if !m.full[host] {
				m.full[host] = true
				m.services = append(m.services, &config.Service{Service: pb.Service{Host: host, Addresses: []string{pick("0.0.0.0", "10.0.0.1", "10.0.0.2", "::2")}}})
			}
		}
		for _, namespace := range []string{"ns1", "ns2", "a"} {
			k := namesKey{Port: 80, Domain: namespace + ".svc.cluster.local"}
			_, cluster, _ := route.InCluster(k.Domain)
			want := m.named(k)
			got := calledIn(namespace, m.common(namesKey{Port: 80, Domain: cluster}))
			if !slices.EqualFunc(got, want, namedHost.equal) {
				for _, h := range want {
					t.Logf("%s: %s", h.service.Host, h.domains.Value())
				}
				for _, h := range got {
					t.Logf("got %s: %s", h.service.Host, h.domains.Value())
				}
				t.Fatalf("in %s", namespace)
			}
			for i, h := range m.common(namesKey{Port: 80, Domain: cluster}) {
				if got[i].domains != h.domains {
					labelled++
				}
			}
		}
	}
	if labelled < 1000 {
		t.Errorf("only %d have a name of their own namespace", labelled)
	}
}
