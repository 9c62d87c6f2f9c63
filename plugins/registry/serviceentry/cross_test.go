package serviceentry

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// behind are the endpoints as HOST/PORT-NAME/ADDRESS:PORT, sorted, with a ! where their registry
// has found that they serve.
func behind(t *testing.T, h *plugintest.Harness) string {
	t.Helper()
	var out []string
	for _, r := range h.Rows(state.Endpoints) {
		e, err := sdk.EndpointOf(r)
		if err != nil {
			t.Fatal(err)
		}
		found := ""
		if e.Health == pb.EndpointHealthReady {
			found = "!"
		}
		out = append(out, fmt.Sprintf("%s/%s/%s:%d%s", e.Host, e.PortName, strings.Join(append([]string{e.Address}, e.MoreAddresses...), "+"), e.Port, found))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func upsert(table string, rows ...*sdk.Row) plugintest.Rows {
	return plugintest.Rows{Table: table, Upserts: rows}
}

func pod(name, address string, ready bool, labels map[string]string) *sdk.Row {
	return sdk.WorkloadRow(&pb.Workload{
		Name: name, Namespace: "default", Addresses: strings.Split(address, "+"), Labels: labels, Ready: ready,
		Cluster: "east", Ports: map[string]uint32{"http": 8080},
	})
}

// TestSelection: pods come, change and go behind an entry that selects them, WorkloadEntries behind
// a cluster's service.
func TestSelection(t *testing.T) {
	app := func(name string) map[string]string { return map[string]string{"app": name} }
	service := func(name string, change func(*pb.Service)) *sdk.Row {
		s := &pb.Service{
			Host: name + ".x", Namespace: "default", Name: name, Registry: "Kubernetes", Selector: app("vm"), Addresses: []string{"10.96.0.1"},
			Ports: []*pb.Port{{Number: 80, Name: "http", Target: 81}, {Number: 90, Name: "named", TargetName: "own"}},
		}
		change(s)
		return sdk.ServiceRow(s)
	}
	const entry = "{hosts: [a.x], ports: [{name: http, number: 80}, {name: other, number: 90, targetPort: 91}], " +
		"resolution: STATIC, workloadSelector: {labels: {app: web}}}"
	for _, c := range []struct {
		name, config string
		steps        []plugintest.Rows
		want         string
	}{
		{"an entry's pods", "", append(read(t, se("a", entry)),
			upsert(state.Workloads, pod("p", "10.0.0.1", true, app("web")), pod("q", "10.0.0.2", false, app("web")), pod("r", "10.0.0.3", true, app("other")))),
			"a.x/http/10.0.0.1:8080! a.x/other/10.0.0.1:91!"},
		{
			"those that were there before", "",
			append([]plugintest.Rows{upsert(state.Workloads, pod("p", "10.0.0.1", true, app("web")))}, read(t, se("a", entry))...),
			"a.x/http/10.0.0.1:8080! a.x/other/10.0.0.1:91!",
		},
		{"those that changed while no entry selected them", "", slices.Concat(read(t, se("a", entry)),
			[]plugintest.Rows{upsert(state.Workloads, pod("p", "10.0.0.1", true, app("web")), pod("q", "10.0.0.2", true, app("web"))),
				{Table: kinds.ServiceEntry, Deletes: []string{"default/a"}},
				{Table: state.Workloads, Deletes: []string{"default/q"}},
				upsert(state.Workloads, pod("p", "10.0.0.9", true, app("web")))},
			read(t, se("a", entry))), "a.x/http/10.0.0.9:8080! a.x/other/10.0.0.9:91!"},
		{"services that were there before", "", append([]plugintest.Rows{upsert(state.Services, service("s", func(*pb.Service) {}))},
			read(t, we("default", "vm", "{address: 10.0.0.4, labels: {app: vm}}"))...), "s.x/http/10.0.0.4:81"},
		{"one with two addresses", "", append(read(t, se("a", entry)), upsert(state.Workloads, pod("p", "10.0.0.1+fd00::1", true, app("web")))),
			"a.x/http/10.0.0.1+fd00::1:8080! a.x/other/10.0.0.1+fd00::1:91!"},
		{"one that ends", "", append(read(t, se("a", entry)),
			upsert(state.Workloads, pod("p", "10.0.0.1", true, app("web"))),
			upsert(state.Workloads, pod("p", "10.0.0.1", false, app("web")))), ""},
		{"one that is gone", "", append(read(t, se("a", entry)), upsert(state.Workloads, pod("p", "10.0.0.1", true, app("web"))),
			plugintest.Rows{Table: state.Workloads, Deletes: []string{"default/p"}}), ""},
		{"no pods", "{\"selectPods\": false}", append(read(t, se("a", entry)), upsert(state.Workloads, pod("p", "10.0.0.1", true, app("web")))), ""},
		{"a service's entries", "", append(read(t,
			we("default", "vm", "{address: 10.0.0.4, labels: {app: vm}, ports: {own: 9000}}")+we("default", "vn", "{address: 10.0.0.5, labels: {app: vm}}")),
			upsert(state.Services, service("s", func(*pb.Service) {}))), "s.x/http/10.0.0.4:81 s.x/http/10.0.0.5:81 s.x/named/10.0.0.4:9000"},
		{
			"one that is relabelled", "",
			append(append(read(t, we("default", "vm", "{address: 10.0.0.4, labels: {app: vm}}")), upsert(state.Services, service("s", func(*pb.Service) {}))),
				read(t, we("default", "vm", "{address: 10.0.0.4, labels: {app: other}}"))...), "",
		},
		{"services of others", "", append(read(t, we("default", "vm", "{address: 10.0.0.4, labels: {app: vm}}")), upsert(state.Services,
			service("s", func(s *pb.Service) { s.Registry = "Consul" }),
			service("h", func(s *pb.Service) { s.Headless = true }),
			service("n", func(s *pb.Service) { s.Selector = nil }))), ""},
		{
			"no entries", "{\"selectWorkloadEntries\": false}",
			append(read(t, we("default", "vm", "{address: 10.0.0.4, labels: {app: vm}}")), upsert(state.Services, service("s", func(*pb.Service) {}))),
			"",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := plugintest.Start(t, Plugin(), []byte(c.config))
			for _, step := range c.steps {
				h.Commit(step)
			}
			if got := behind(t, h); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
