package memory

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/plugins/internal/registrytest"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestMain(m *testing.M) { wait.Main(m) }

func TestRows(t *testing.T) {
	h := plugintest.Start(t, Plugin(), `{"cluster": "c1", "services": [
		{"host": "a.x", "namespace": "n", "name": "a", "addresses": ["10.0.0.1/32", "10.1.0.0/16"], "exportTo": ["."], "subjectAltNames": ["san"],
		 "labels": {"l": "v"}, "ports": [{"number": 80, "protocol": "http", "targetPort": 8080}, {"number": 90, "name": "admin", "targetPort": 90}],
		 "endpoints": [{"address": "10.2.0.1", "ports": {"admin": 91}, "labels": {"istio-locality": "r.z"}, "serviceAccount": "sa", "weight": 2, "workload": "w"},
		               {"address": "unix:///run/s", "network": "net", "locality": "r/z2"}]}]}`)
	h.WaitSynced()
	s, err := sdk.ServiceOf(h.Rows(state.Services)["n/a.x"])
	if err != nil {
		t.Fatal(err)
	}
	want := &pb.Service{
		Host: "a.x", Namespace: "n", Name: "a", Addresses: []string{"10.0.0.1", "10.1.0.0/16"}, ExportTo: []string{"."},
		SubjectAltNames: []string{"san"}, Labels: map[string]string{"l": "v"}, Registry: "Memory",
		Ports: []*pb.Port{{Number: 80, Name: "http-80", Protocol: "HTTP", Target: 8080}, {Number: 90, Name: "admin"}},
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("service (-want +got):\n%s", diff)
	}
	endpoints := map[string]*pb.Endpoint{}
	for key, r := range h.Rows(state.Endpoints) {
		if endpoints[strings.TrimPrefix(key, "n/a.x/")], err = sdk.EndpointOf(r); err != nil {
			t.Fatal(err)
		}
	}
	of := func(name string, number uint32, e pb.Endpoint) *pb.Endpoint {
		e.Host, e.Namespace, e.PortName, e.ServicePort, e.Cluster = "a.x", "n", name, number, "c1"
		return &e
	}
	first := pb.Endpoint{
		Address: "10.2.0.1", Labels: map[string]string{"istio-locality": "r.z"}, Locality: "r/z", ServiceAccount: "sa", Weight: 2,
		Workload: "w", TlsMode: "istio",
	}
	http, admin := first, first
	http.Port, admin.Port = 8080, 91
	socket := pb.Endpoint{Address: "unix:/run/s", Network: "net", Locality: "r/z2", TlsMode: "disabled", Workload: "a-1", Index: 1}
	wanted := map[string]*pb.Endpoint{
		"http-80/10.2.0.1:8080": of("http-80", 80, http), "admin/10.2.0.1:91": of("admin", 90, admin),
		"http-80/[unix:/run/s]:0": of("http-80", 80, socket), "admin/[unix:/run/s]:0": of("admin", 90, socket),
	}
	if diff := cmp.Diff(wanted, endpoints); diff != "" {
		t.Errorf("endpoints (-want +got):\n%s", diff)
	}
}

func TestNoConfig(t *testing.T) {
	h := plugintest.Start(t, Plugin(), nil)
	h.WaitSynced()
	if n := len(h.Rows(state.Services)); n > 0 {
		t.Errorf("%d services", n)
	}
}

func TestRefusals(t *testing.T) {
	with := func(service string) string { return `{"services": [` + service + `]}` }
	for _, c := range []struct{ config, field, reason string }{
		{`{"sevices": []}`, "sevices", `did you mean "services"`},
		{`{"services": {}}`, "services", "expected a list"},
		{with(`{}`), "services[0].host", "missing"},
		{with(`{"host": "a b", "ports": [{"number": 1}]}`), "services[0].host", "not a DNS name"},
		{with(`{"host": "a.x"}`), "services[0].ports", "missing"},
		{with(`{"host": "a.x", "port": []}`), "services[0].port", `did you mean "ports"`},
		{with(`{"host": "a.x", "ports": [{"number": "http"}]}`), "services[0].ports[0].number", `not "http"`},
		{with(`{"host": "a.x", "ports": [{"number": 70000}]}`), "services[0].ports[0].number", "70000"},
		{with(`{"host": "a.x", "ports": [{"number": 1}, {"number": 1, "name": "b"}]}`), "services[0].ports[1].number", "twice"},
		{with(`{"host": "a.x", "ports": [{"number": 1, "name": "b"}, {"number": 2, "name": "b"}]}`), "services[0].ports[1].name", "twice"},
		{with(`{"host": "a.x", "ports": [{"number": 1, "protocol": "SMTP"}]}`), "services[0].ports[0].protocol", "SMTP"},
		{with(`{"host": "a.x", "resolution": "dns", "ports": [{"number": 1}]}`), "services[0].resolution", `did you mean "DNS"`},
		{with(`{"host": "a.x", "addresses": ["10"], "ports": [{"number": 1}]}`), "services[0].addresses[0]", "CIDR"},
		{with(`{"host": "a.x", "ports": [{"number": 1}], "endpoints": [{}]}`), "services[0].endpoints[0].address", "missing"},
		{
			with(`{"host": "a.x", "ports": [{"number": 1}], "endpoints": [{"address": "b.x"}]}`),
			"services[0].endpoints[0].address", "resolution DNS takes names",
		},
		{
			with(`{"host": "a.x", "ports": [{"number": 1}], "endpoints": [{"address": "1.1.1.1", "ports": {"x": 1}}]}`),
			"services[0].endpoints[0].ports.x", "no such port",
		},
		{
			with(`{"host": "a.x", "ports": [{"number": 1}, {"number": 2}], "endpoints": [{"address": "1.1.1.1", "port": 1}]}`),
			"services[0].endpoints[0].port", "2 ports",
		},
		{
			with(`{"host": "a.x", "ports": [{"number": 1}], "endpoints": [{"address": "1.1.1.1", "labels": {"a": 1}}]}`),
			"services[0].endpoints[0].labels.a", "a string",
		},
		{with(`{"host": "a.x", "ports": [{"number": 1}]}, {"host": "a.x", "ports": [{"number": 1}]}`), "services[1].host", "services[0]"},
	} {
		field, reason := plugintest.Refusal(t, Plugin(), c.config)
		if field != c.field || !strings.Contains(reason, c.reason) {
			t.Errorf("%s\n got %s: %s\nwant %s: …%s…", c.config, field, reason, c.field, c.reason)
		}
	}
}

func TestReadme(t *testing.T) {
	blocks, config := readme.Example(t, 2)
	registrytest.CheckSchema(t, string(sdk.ConfigSchema(Plugin())), config)
	h := plugintest.Start(t, Plugin(), config)
	h.WaitSynced()
	var got strings.Builder
	for _, table := range []string{state.Services, state.Endpoints} {
		for _, key := range slices.Sorted(maps.Keys(h.Rows(table))) {
			got.WriteString(table + " " + key + "\n")
		}
	}
	if diff := cmp.Diff(blocks[1].Text, got.String()); diff != "" {
		t.Errorf("(-README +got):\n%s", diff)
	}
}
