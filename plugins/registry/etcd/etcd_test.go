package etcd

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-mesh/coxswain/plugins/internal/etcd"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// shard is a Publisher that keeps what was published.
type shard struct {
	rows   map[string]map[string]*sdk.Row
	synced bool
	logged []string
}

func (s *shard) Update(table string, upserts []*sdk.Row, deletes []string) error {
	if s.rows == nil {
		s.rows = map[string]map[string]*sdk.Row{}
	}
	if s.rows[table] == nil {
		s.rows[table] = map[string]*sdk.Row{}
	}
	for _, r := range upserts {
		s.rows[table][r.Key] = r
	}
	for _, k := range deletes {
		delete(s.rows[table], k)
	}
	return nil
}

func (s *shard) Synced() error                             { s.synced = true; return nil }
func (s *shard) State() (*state.State, <-chan struct{})    { return &state.State{}, nil }
func (s *shard) Log(_ sdk.Level, text string, args ...any) { s.logged = append(s.logged, text) }

func (s *shard) keys(table string) []string { return slices.Sorted(maps.Keys(s.rows[table])) }

// faults are what is shown, as FILE FIELD MESSAGE.
func (s *shard) faults(t *testing.T) (all []string) {
	t.Helper()
	for _, r := range s.rows[state.Faults] {
		var f kinds.Fault
		if err := json.Unmarshal(r.Payload, &f); err != nil {
			t.Fatal(err)
		}
		all = append(all, f.File+" "+f.Text())
	}
	slices.Sort(all)
	return all
}

func pair(key, value string) etcd.Pair { return etcd.Pair{Key: key, Value: []byte(value)} }

func newTest(t *testing.T, more string) (*publication, *shard) {
	t.Helper()
	c, err := parse([]byte(`{"endpoints": ["http://127.0.0.1:1"], "prefix": "/m/"` + more + `}`))
	if err != nil {
		t.Fatal(err)
	}
	out := &shard{}
	return newPublication(c, out), out
}

func (p *publication) must(t *testing.T, b etcd.Batch) {
	t.Helper()
	if err := p.handle(b); err != nil {
		t.Fatal(err)
	}
}

func TestReadme(t *testing.T) {
	blocks, _ := readme.Example(t, 4)
	text := strings.Replace(blocks[0].Text, "{env: ETCD_PASSWORD}", "secret", 1)
	config, err := readme.Block{Text: text}.Config()
	if err != nil {
		t.Fatal(err)
	}
	c, err := parse(config)
	if err != nil || c.Prefix != "/shop/" {
		t.Fatalf("%+v, %v", c, err)
	}
	out := &shard{}
	p := newPublication(c, out)
	b := etcd.Batch{Whole: true}
	for _, block := range blocks[1:3] {
		b.Put = append(b.Put, pair(strings.TrimPrefix(block.Title, "json /shop/"), block.Text))
	}
	p.must(t, b)
	if len(out.faults(t)) > 0 || !out.synced {
		t.Fatal(out.faults(t))
	}
	got := map[string]bool{}
	for _, table := range []string{state.Services, state.Endpoints} {
		for _, key := range out.keys(table) {
			got[table+" "+key] = true
		}
	}
	for line := range strings.Lines(blocks[3].Text) {
		if line = strings.TrimSpace(line); !got[line] {
			t.Errorf("there is no %s in %v", line, got)
		}
		delete(got, line)
	}
	if len(got) > 0 {
		t.Errorf("the README lacks %v", got)
	}
}

func TestRefusals(t *testing.T) {
	for config, field := range map[string]string{
		`{}`:                                "endpoints",
		`{"endpoints": []}`:                 "endpoints",
		`{"endpoints": ["127.0.0.1:2379"]}`: "endpoints[0]",
		`{"endpoints": ["http://a", "https://b"]}`:                     "endpoints[1]",
		`{"endpoints": ["http://u:p@a"]}`:                              "endpoints[0]",
		`{"endpoints": ["http://a"], "username": "x"}`:                 "username",
		`{"endpoints": ["http://a"], "tls": {}}`:                       "tls",
		`{"endpoints": ["https://a"], "tls": {"cert": "x"}}`:           "tls.cert",
		`{"endpoints": ["http://a"], "prefix": ""}`:                    "prefix",
		`{"endpoints": ["http://a"], "limits": {"records": 0}}`:        "limits.records",
		`{"endpoints": ["http://a"], "limits": {"recordBytes": 1e6}}`:  "limits.recordBytes",
		`{"endpoints": ["http://a"], "limits": {"recordBytess": 1e6}}`: "limits.recordBytess",
	} {
		_, err := parse([]byte(config))
		var at *sdk.FieldError
		if !errors.As(err, &at) || at.Field != field {
			t.Errorf("%s: %v, not of %s", config, err, field)
		}
	}
	const head = `{"host": "a.x", "address": "1.1.1.1", `
	for text, want := range map[string]string{
		``:                                      ": is no JSON",
		`{"host": "a.x"`:                        ": is no JSON: at byte",
		"{\"host\": \"a.x\", \"\xff\": 1}":      "\ufffd: unknown",
		`[]`:                                    ": expected an object",
		`{}`:                                    "host: is missing",
		`{"host": "a x"}`:                       "host: ",
		`{"host": "a.x"}`:                       "address: is missing",
		`{"host": "a.x", "address": "b.x"}`:     "address: ",
		`{"host": "a.x", "adress": "1.1.1"}`:    `adress: unknown; did you mean "address"`,
		head + `"port": 70000}`:                 "port: 70000",
		head + `"namespace": "a/b"}`:            "namespace: ",
		`{"host": "a.x", "address": "1.1.1.1"}`: "ports: ",
		head + `"port": 1, "ports": [{"number": 1}]}`:                                  "port: stands beside ports",
		head + `"port": 1, "protocol": "SMTP"}`:                                        "protocol: ",
		head + `"protocol": "HTTP"}`:                                                   "port: 0",
		head + `"ports": [{"number": 1}, {"number": 1}]}`:                              "ports[1].number: 1 is there twice",
		head + `"ports": [{"number": 1, "name": "b"}, {"number": 2, "name": "b"}]}`:    "ports[1].name: ",
		head + `"ports": [{"number": 1, "targetPort": 70000}]}`:                        "ports[0].targetPort: ",
		head + `"ports": [{"number": 1, "name": "a/b"}]}`:                              "ports[0].name: ",
		head + `"port": 1, "weight": 0}`:                                               "weight: 0 is not between",
		head + `"port": 1, "health": "ok"}`:                                            "health: ",
		head + `"port": 1, "labels": {"a": 1}}`:                                        "labels.a: ",
		head + `"port": 1, "service": {"addresses": ["10"]}}`:                          "service.addresses[0]: ",
		head + `"port": 1, "service": {"adresses": ["10"]}}`:                           "service.adresses: ",
		head + `"ports": [` + strings.Repeat(`{"number": 1},`, 101) + `{"number":1}]}`: "ports: 102",
	} {
		_, err := read("k", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, not %s", text, err, want)
		}
	}
}

// TestRows: what a record says is in the rows.
func TestRows(t *testing.T) {
	p, out := newTest(t, `, "cluster": "c"`)
	p.must(t, etcd.Batch{Whole: true, Put: []etcd.Pair{
		pair("web/1",
			`{"host": "Web.example", "namespace": "shop", "address": "10.0.0.1", "ports": [{"number": 80, "name": "http", "protocol": "http", "targetPort": 8080}],
			"weight": 5, "health": "draining", "labels": {"version": "v1"}, "locality": "r/z", "network": "n", "serviceAccount": "sa", "workload": "w",
			"service": {"name": "web", "addresses": ["240.0.0.1/32"], "exportTo": ["."], "subjectAltNames": ["san"], "labels": {"l": "v"}, "external": true}}`),
		pair("web/2", `{"host": "web.example", "namespace": "shop", "address": "unix:///run/s", "port": 80, "protocol": "HTTP"}`),
	}})
	s, err := sdk.ServiceOf(out.rows[state.Services]["shop/web.example"])
	if err != nil {
		t.Fatal(err)
	}
	want := &pb.Service{
		Host: "web.example", Namespace: "shop", Name: "web", Addresses: []string{"240.0.0.1"}, ExportTo: []string{"."}, SubjectAltNames: []string{"san"},
		Labels: map[string]string{"l": "v"}, External: true, Registry: "Etcd", Ports: []*pb.Port{{Number: 80, Name: "http", Protocol: "HTTP"}},
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Error(diff)
	}
	e, err := sdk.EndpointOf(out.rows[state.Endpoints]["shop/web.example/http/10.0.0.1:8080"])
	if err != nil {
		t.Fatal(err)
	}
	one := &pb.Endpoint{
		Host: "web.example", Namespace: "shop", PortName: "http", ServicePort: 80, Address: "10.0.0.1", Port: 8080, Labels: map[string]string{"version": "v1"},
		Network: "n", Locality: "r/z", Weight: 5, ServiceAccount: "sa", Health: pb.EndpointHealthDraining, TlsMode: "istio", Cluster: "c", Workload: "w",
	}
	if diff := cmp.Diff(one, e); diff != "" {
		t.Error(diff)
	}
	if got := out.keys(state.Endpoints); len(got) != 2 || got[1] != "shop/web.example/http/[unix:/run/s]:0" {
		t.Errorf("endpoints %q", got)
	}
	// The second calls port 80 http-80, which the first calls http.
	if got := out.faults(t); len(got) != 1 || !strings.HasPrefix(got[0], "etcd:/m/web/2 ports[0]: port 80 is \"http-80\", HTTP; in web/1, which counts") {
		t.Errorf("faults %q", got)
	}
}

// TestLastGood: a record that becomes unreadable or too large keeps what it was, a new one is left
// out, and a list that is read anew changes nothing of that.
func TestLastGood(t *testing.T) {
	p, out := newTest(t, `, "limits": {"recordBytes": 200}`)
	const good = `{"host": "%s.x", "address": "10.0.0.%d", "port": 80}`
	a, b := pair("a", fmt.Sprintf(good, "a", 1)), pair("b", fmt.Sprintf(good, "b", 2))
	p.must(t, etcd.Batch{Whole: true, Put: []etcd.Pair{a, b}})
	before := out.keys(state.Endpoints)
	broken, large, fresh := pair("a", `{"host": 1}`), pair("b", strings.Repeat(" ", 201)), pair("c", `{`)
	p.must(t, etcd.Batch{Put: []etcd.Pair{broken, large, fresh}})
	check := func(want ...string) {
		t.Helper()
		got := out.faults(t)
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || !strings.HasPrefix(got[i], want[i]) {
				t.Fatalf("faults %q, not %q", got, want)
			}
		}
	}
	all := []string{
		"etcd:/m/a host: expected a string, not a number; its last good version stays",
		"etcd:/m/b has 201 bytes, which is more than limits.recordBytes, 200; its last good",
		"etcd:/m/c is no JSON: at byte",
	}
	check(all...)
	if got := out.keys(state.Endpoints); !slices.Equal(got, before) {
		t.Errorf("endpoints %q, before %q", got, before)
	}
	p.must(t, etcd.Batch{Whole: true, Put: []etcd.Pair{broken, large, fresh}})
	check(all...)
	if got := out.keys(state.Endpoints); !slices.Equal(got, before) {
		t.Errorf("endpoints %q, before %q", got, before)
	}
	p.must(t, etcd.Batch{Gone: []string{"a", "c"}, Put: []etcd.Pair{b}})
	check()
	if got := out.keys(state.Services); !slices.Equal(got, []string{"default/b.x"}) {
		t.Errorf("services %q", got)
	}
	p.must(t, etcd.Batch{Whole: true})
	if got := out.keys(state.Services); len(got) > 0 {
		t.Errorf("services %q", got)
	}
}

// TestMoves: a key whose record is of another service than before leaves that.
func TestMoves(t *testing.T) {
	p, out := newTest(t, "")
	p.must(t, etcd.Batch{Whole: true, Put: []etcd.Pair{pair("a", `{"host": "a.x", "address": "10.0.0.1", "port": 80}`)}})
	p.must(t, etcd.Batch{Put: []etcd.Pair{pair("a", `{"host": "b.x", "address": "10.0.0.1", "port": 80}`)}})
	if got := out.keys(state.Services); !slices.Equal(got, []string{"default/b.x"}) {
		t.Errorf("services %q", got)
	}
	if got := out.keys(state.Endpoints); !slices.Equal(got, []string{"default/b.x/port-80/10.0.0.1:80"}) {
		t.Errorf("endpoints %q", got)
	}
}

// TestManyFaults: of very many the first are shown, and how many there are; what is left out of the
// list, too.
func TestManyFaults(t *testing.T) {
	p, out := newTest(t, "")
	b := etcd.Batch{Whole: true}
	for i := range mostFaults + 10 {
		b.Put = append(b.Put, pair(fmt.Sprintf("%05d", i), "{"))
	}
	p.left = 7
	p.must(t, b)
	got := strings.Join(out.faults(t), "\n")
	if n := len(out.rows[state.Faults]); n != mostFaults+2 || !strings.Contains(got, "10 more records") || !strings.Contains(got, "7 keys are left out") {
		t.Errorf("%d faults", n)
	}
	if n := len(out.logged); n != mostLogged+1 {
		t.Errorf("%d lines", n)
	}
}
