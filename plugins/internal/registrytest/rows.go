package registrytest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Describe tells of rows that come, a line each: services, endpoints (with their nodes, where the
// registry knows such), and what is lost.
func Describe(t testing.TB, changes instances.Changes, nodes bool) string {
	t.Helper()
	var out strings.Builder
	byKey := func(a, b *sdk.Row) int { return strings.Compare(a.Key, b.Key) }
	for _, r := range changes.Upserts[state.Services] {
		s, err := sdk.ServiceOf(r)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "services %s", r.Key)
		for _, p := range s.Ports {
			fmt.Fprintf(&out, " %s %s", p.Name, p.Protocol)
		}
		if s.Resolution == pb.ServiceResolutionDns {
			out.WriteString(" by DNS")
		}
		if s.External {
			out.WriteString(" external")
		}
		out.WriteString("\n")
	}
	slices.SortFunc(changes.Upserts[state.Endpoints], byKey)
	for _, r := range changes.Upserts[state.Endpoints] {
		e, err := sdk.EndpointOf(r)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "endpoints %s weight %d%s\n", r.Key, e.Weight, more(e, nodes))
	}
	slices.SortFunc(changes.Upserts[instances.Faults], byKey)
	for _, r := range changes.Upserts[instances.Faults] {
		var f struct{ Message string }
		if err := json.Unmarshal(r.Payload, &f); err != nil {
			t.Fatal(err)
		}
		count, _, _ := strings.Cut(f.Message, ") ")
		_, key, _ := strings.Cut(r.Key, ":")
		fmt.Fprintf(&out, "lost %s %s)\n", key, count)
	}
	return out.String()
}

// more is what an endpoint has that others lack.
func more(e *sdk.Endpoint, nodes bool) string {
	var out strings.Builder
	if e.Locality != "" {
		out.WriteString(" locality " + e.Locality)
	}
	for i, k := range slices.Sorted(maps.Keys(e.Labels)) {
		fmt.Fprintf(&out, "%s%s=%s", []string{" labels ", ","}[min(i, 1)], k, e.Labels[k])
	}
	if nodes {
		out.WriteString(" node " + e.Node)
	}
	if e.TlsMode == "istio" {
		out.WriteString(" account " + e.ServiceAccount)
	}
	switch e.Health {
	case pb.EndpointHealthUnhealthy:
		out.WriteString(" not healthy")
	case pb.EndpointHealthDraining:
		out.WriteString(" draining")
	}
	return out.String()
}
