package routes

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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
		m, known := portMembers{full: map[string]bool{}}, map[string]bool{}
		for range rnd.IntN(12) {
			host := pick("a", "b", "*", "a.ns1", "b.ns2.svc", "10.0.0.1", "::1", "x.example.com", "ns1", "")
			if rnd.IntN(3) > 0 || host == "" {
				host = fmt.Sprintf("%s.%s.svc.%s", pick("a", "b", "*", "c.d"), pick("ns1", "ns2", "a"), pick("cluster.local", "cluster.local", "other"))
			}
			if rnd.IntN(4) == 0 {
				host = strings.ToUpper(host[:1]) + host[1:]
			}
			if !known[host] {
				known[host], m.full[strings.ToLower(host)] = true, true
				m.services = append(m.services,
					&config.Service{Service: pb.Service{Host: host, Addresses: []string{pick("0.0.0.0", "10.0.0.1", "10.0.0.2", "::2")}}})
			}
		}
		for _, namespace := range []string{"ns1", "ns2", "a"} {
			k := namesKey{Port: 80, Domain: namespace + ".svc.cluster.local"}
			_, cluster, _ := route.InCluster(k.Domain)
			want := m.named(k)
			got := calledIn(namespace, m.common(namesKey{Port: 80, Domain: cluster}))
			if d := repeated(got); d != "" {
				t.Fatalf("in %s: %s is there twice", namespace, d)
			}
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

// repeated is a domain that hosts have twice, in any case; empty: none is.
func repeated(hosts []namedHost) string {
	seen := map[string]bool{}
	for _, h := range hosts {
		for _, d := range strings.Split(h.domains.Value(), " ") {
			if d = strings.ToLower(d); seen[d] {
				return d
			}
			seen[d] = true
		}
	}
	return ""
}
