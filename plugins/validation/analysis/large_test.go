package analysis

import (
	"fmt"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

// TestLarge: 10,000 resources of each kind, all with findings, and as many workloads: each is told
// what is wrong with it.
func TestLarge(t *testing.T) {
	const many = 10_000
	var in Input
	add := func(kind, name string, spec finding.Resource) {
		spec.Group, spec.Version, spec.Kind, spec.Namespace, spec.Name = "networking.istio.io", "v1", kind, "shop", name
		in.Resources = append(in.Resources, Resource{Resource: spec})
	}
	for i := range many {
		name := fmt.Sprint("n", i)
		add("VirtualService", name, finding.Resource{Spec: &networking.VirtualService{Hosts: []string{name + ".example"}, Gateways: []string{name}, Http: []*networking.HTTPRoute{{
			Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: "nowhere.example", Subset: name}}},
		}}}})
		add("Gateway", name, finding.Resource{Spec: &networking.Gateway{Selector: map[string]string{"app": name}, Servers: []*networking.Server{{
			Hosts: []string{"*"}, Port: &networking.Port{Number: 443}, Tls: &networking.ServerTLSSettings{CredentialName: "shared"},
		}}}})
		add("DestinationRule", name, finding.Resource{Spec: &networking.DestinationRule{Host: name + ".nowhere", Subsets: []*networking.Subset{{Name: "v1"}}}})
		in.Workloads = append(in.Workloads, Workload{Namespace: "shop", Labels: map[string]string{"app": fmt.Sprint("w", i)}, Name: name})
	}
	told := map[string]int{}
	for _, r := range Analyze(in) {
		told[r.Resource.Kind+" "+r.Code]++
	}
	for what, want := range map[string]int{"VirtualService IST0101": 2 * many, "Gateway IST0101": many, "DestinationRule IST0174": many} {
		if told[what] != want {
			t.Errorf("%s is told of %d, not %d: %v", what, told[what], want, told)
		}
	}
}
