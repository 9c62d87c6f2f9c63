package consul

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
	"github.com/coxswain-mesh/coxswain/plugins/internal/registrytest"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// recorded returns what Consul 1.15.4 answered, with its header.
func recorded(t *testing.T, name string) *http.Response {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".http"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	r, err := http.ReadResponse(bufio.NewReader(f), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func entries(t *testing.T, text io.Reader) (all []entry) {
	t.Helper()
	if err := json.NewDecoder(text).Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

func configured(t *testing.T, config string) *Config {
	t.Helper()
	c, err := parse([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// describe tells what is published of a service, and what is lost of it, a line each.
func describe(t *testing.T, c *Config, name string, all []entry) string {
	t.Helper()
	b := newBook(c)
	b.set(&watch{name: name}, all)
	rows := b.Changes()
	var out strings.Builder
	for _, r := range rows.Upserts[state.Services] {
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
	slices.SortFunc(rows.Upserts[state.Endpoints], func(a, b *sdk.Row) int { return strings.Compare(a.Key, b.Key) })
	for _, r := range rows.Upserts[state.Endpoints] {
		e, err := sdk.EndpointOf(r)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "endpoints %s weight %d locality %s", r.Key, e.Weight, e.Locality)
		for i, k := range slices.Sorted(maps.Keys(e.Labels)) {
			fmt.Fprintf(&out, "%s%s=%s", []string{" labels ", ","}[min(i, 1)], k, e.Labels[k])
		}
		fmt.Fprintf(&out, " node %s", e.Node)
		if e.TlsMode == "istio" {
			fmt.Fprintf(&out, " account %s", e.ServiceAccount)
		}
		switch e.Health {
		case pb.EndpointHealthUnhealthy:
			out.WriteString(" not healthy")
		case pb.EndpointHealthDraining:
			out.WriteString(" draining")
		}
		out.WriteString("\n")
	}
	lost := b.Lost()[strings.ToLower(name)]
	for _, r := range slices.Sorted(maps.Keys(lost)) {
		fmt.Fprintf(&out, "lost %s %d: %s\n", r, lost[r].Count, lost[r].Of)
	}
	return out.String()
}

// TestRecorded: what becomes of instances as Consul itself answers about them.
func TestRecorded(t *testing.T) {
	for _, c := range []struct{ name, service, config, want string }{
		{"web", "web", `{}`, `services default/web.service.consul http2-8080 HTTP2
endpoints default/web.service.consul/http2-8080/10.0.0.2:8080 weight 2 locality dc1 labels protocol=http2,service-account=web,version=v2 node n2 account web
endpoints default/web.service.consul/http2-8080/10.1.0.1:8080 weight 5 locality eu/eu-1 labels owner=shop,protocol=http2,tag/canary=true,team=shop,version=v1 node n1
endpoints default/web.service.consul/http2-8080/10.1.0.3:8080 weight 1 locality dc1 labels protocol=http2 node n2 not healthy
endpoints default/web.service.consul/http2-8080/10.1.0.4:8080 weight 1 locality eu/eu-1 labels protocol=http2 node n1 draining
lost tag 1: urlprefix-/shop strip=/shop
`},
		{
			"web", "Web",
			`{"healthy": ["passing"], "taggedAddress": "wan", "servicePort": 80, "host": "{service}.{partition}.example.com", "meshNamespace": "shop",
			"meta": {"protocol": "none", "serviceAccount": ""}, "protocol": "", "locality": {"subzone": "rack"}}`, `services shop/web.default.example.com auto-80 
endpoints shop/web.default.example.com/auto-80/10.0.0.2:8080 weight 2 locality dc1 labels protocol=http2,service-account=web,version=v2 node n2 not healthy
endpoints shop/web.default.example.com/auto-80/10.1.0.3:8080 weight 1 locality dc1 labels protocol=http2 node n2 not healthy
endpoints shop/web.default.example.com/auto-80/10.1.0.4:8080 weight 1 locality eu/eu-1/r7 labels protocol=http2 node n1 draining
endpoints shop/web.default.example.com/auto-80/203.0.113.11:18080 weight 5 locality eu/eu-1/r7 labels owner=shop,protocol=http2,tag/canary=true,team=shop,version=v1 node n1
lost tag 1: urlprefix-/shop strip=/shop
`,
		},
		{"db", "db", `{}`, `services default/db.service.consul tcp-5432 TCP by DNS external
endpoints default/db.service.consul/tcp-5432/db.example.com:5432 weight 1 locality eu/eu-1 labels external=true,tag/tcp=true node n1
`},
		{"odd", "odd", `{}`, `services default/odd.service.consul http-8001 HTTP
endpoints default/odd.service.consul/http-8001/10.1.1.2:8001 weight 1 locality eu/eu-1 labels port=eighty node n1
endpoints default/odd.service.consul/http-8001/10.1.1.3:8002 weight 1 locality eu/eu-1 labels port=8001,protocol=tcp node n1
lost address 1: n1/odd-0
lost name 1: odd.example.com
lost port 1: n1/odd-1
lost port-meta 1: n1/odd-2
lost protocol 1: 8001
lost same 1: n1/odd-4
lost socket 1: n1/odd-6
`},
		{"web-sidecar-proxy", "web-sidecar-proxy", `{}`, "lost kind 1: n1/web-proxy\n"},
		{"bad", "no dns name", `{}`, "lost host 1: no dns name\n"},
		{"gone", "gone", `{}`, ""},
	} {
		t.Run(c.name+c.service, func(t *testing.T) {
			if diff := cmp.Diff(c.want, describe(t, configured(t, c.config), c.service, entries(t, recorded(t, c.name).Body))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestDocumented: what Consul 1.15 hasn't got, as later ones document it.
func TestDocumented(t *testing.T) {
	got := describe(t, configured(t, `{}`), "multi", entries(t, strings.NewReader(`[
		{"Node": {"Node": "n1", "Address": "10.0.0.1", "Datacenter": "dc1", "Locality": {"Region": "us", "Zone": "us-1"}},
		 "Service": {"ID": "m", "Service": "multi", "Meta": {"protocol-admin": "http", "port": "80"},
		             "Ports": [{"Name": "grpc-api", "Port": 9000, "Default": true}, {"Name": "admin", "Port": 9001}, {"Name": "x", "Port": 0}]}},
		{"Node": {"Node": "n2", "Address": "10.0.0.2", "Datacenter": "dc1"},
		 "Service": {"ID": "m", "Service": "multi", "Port": 80, "Locality": {"Region": "eu", "Zone": "eu-1"}, "Weights": {"Passing": 1, "Warning": 0}, "Tags": ["a=1", "a=2", "topology.istio.io/network|n1"]},
		 "Checks": [{"CheckID": "c", "Status": "warning"}]}]`)))
	want := `services default/multi.service.consul grpc-api GRPC admin HTTP
endpoints default/multi.service.consul/admin/10.0.0.1:9001 weight 1 locality us/us-1 labels port=80,protocol-admin=http node n1
endpoints default/multi.service.consul/grpc-api/10.0.0.1:9000 weight 1 locality us/us-1 labels port=80,protocol-admin=http node n1
endpoints default/multi.service.consul/grpc-api/10.0.0.2:80 weight 1 locality eu/eu-1 labels a=1,topology.istio.io/network=n1 node n2 not healthy
lost port 1: n1/m
lost protocol 1: 80
lost twice 1: a=2
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPortsOfTheirOwn: a scheduler's dynamic ports are one service port where the config says so,
// and at most 64 otherwise.
func TestPortsOfTheirOwn(t *testing.T) {
	var all []entry
	for i := range 100 {
		all = append(all, at("web", i, func(e *entry) { e.Service.Port = 20000 + i }))
	}
	got := describe(t, configured(t, `{}`), "web", all)
	if n := strings.Count(got, "endpoints "); n != 64 || !strings.Contains(got, "lost ports 36: 20064") {
		t.Errorf("%d endpoints, and\n%s", n, got[strings.LastIndex(got, "lost"):])
	}
	got = describe(t, configured(t, `{"servicePort": 80}`), "web", all)
	if n := strings.Count(got, "endpoints default/web.service.consul/http-80/"); n != 100 || strings.Contains(got, "lost") {
		t.Errorf("%d endpoints", n)
	}
}

// TestBroken: an instance whose address or port can't be used any more stays what it was; a new one
// harms nobody.
func TestBroken(t *testing.T) {
	b := newBook(configured(t, `{}`))
	w := &watch{name: "web"}
	b.set(w, []entry{at("web", 1), at("web", 2)})
	b.Changes()
	b.set(w, []entry{
		at("web", 1, func(e *entry) { e.Service.Address = "???" }), at("web", 2, func(e *entry) { e.Service.Port = 0 }),
		at("web", 3, func(e *entry) { e.Service.Port = 70000 }), at("web", 4),
	})
	rows := b.Changes()
	if len(rows.Deletes[state.Endpoints]) != 0 || len(rows.Upserts[state.Endpoints]) != 1 || len(rows.Upserts[instances.Faults]) != 2 {
		t.Errorf("%v", rows)
	}
	b.set(w, []entry{at("web", 4)})
	if rows = b.Changes(); len(rows.Deletes[state.Endpoints]) != 2 || len(rows.Deletes[instances.Faults]) != 2 {
		t.Errorf("%v", rows)
	}
	b.hold(w, lostAnswer)
	if rows = b.Changes(); len(rows.Upserts[instances.Faults]) != 1 || len(rows.Deletes[state.Endpoints]) != 0 {
		t.Errorf("%v", rows)
	}
	b.release(w)
	if rows = b.Changes(); len(rows.Deletes[instances.Faults]) != 1 || len(rows.Upserts[state.Endpoints]) != 0 {
		t.Errorf("%v", rows)
	}
	b.remove(w)
	if rows = b.Changes(); len(rows.Deletes[state.Endpoints]) != 1 || len(rows.Deletes[state.Services]) != 1 || b.Services() != 0 {
		t.Errorf("%v", rows)
	}
}

// FuzzMapping: whatever can be read as instances makes rows that can be read, or is counted.
func FuzzMapping(f *testing.F) {
	for _, name := range []string{"web", "db", "odd", "web-sidecar-proxy", "bad"} {
		text, err := os.ReadFile(filepath.Join("testdata", name+".http"))
		if err != nil {
			f.Fatal(err)
		}
		_, body, _ := strings.Cut(string(text), "\n\n")
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var all []entry
		if json.Unmarshal([]byte(text), &all) == nil {
			c, err := parse(nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := describe(t, c, "web", all); len(all) > 0 && got == "" {
				t.Errorf("nothing came of %s", text)
			}
		}
	})
}

// TestStatus is that of Consul's own client library.
func TestStatus(t *testing.T) {
	for want, checks := range map[string][]check{
		passing: {{"a", passing}}, warning: {{"a", passing}, {"b", warning}}, critical: {{"a", critical}, {"b", warning}},
		maintenance: {{"a", critical}, {"_node_maintenance", critical}},
	} {
		if got := (&entry{Checks: checks}).status(); got != want {
			t.Errorf("%v: %s, not %s", checks, got, want)
		}
	}
	if got := (&entry{}).status(); got != passing {
		t.Errorf("without checks: %s", got)
	}
	if got := (&entry{Checks: []check{{"a", "unheard of"}}}).status(); got != critical {
		t.Errorf("another status: %s", got)
	}
}

// TestReadme runs the examples.
func TestReadme(t *testing.T) {
	registrytest.Readme{
		Schema: string(sdk.ConfigSchema(Plugin())), Parse: func(config []byte) error { _, err := parse(config); return err },
		Secret: "token",
		Describe: func(example string) string {
			return describe(t, configured(t, `{}`), "web", entries(t, strings.NewReader(example)))
		}, Reasons: registrytest.Names(reasons),
	}.Check(t)
}
