package etcd

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-mesh/coxswain/plugins/internal/etcd"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/plugins/validation"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/lead"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// shard is a Publisher that keeps what was published.
type shard struct {
	rows   map[string]map[string]*sdk.Row
	synced bool
	said   int
}

func (s *shard) Update(table string, upserts []*sdk.Row, deletes []string) error {
	if s.rows == nil {
		s.rows = map[string]map[string]*sdk.Row{}
	}
	if s.rows[table] == nil {
		s.rows[table] = map[string]*sdk.Row{}
	}
	s.said++
	for _, r := range upserts {
		s.rows[table][r.Key] = r
	}
	for _, k := range deletes {
		delete(s.rows[table], k)
	}
	return nil
}

func (s *shard) Synced() error                          { s.synced = true; return nil }
func (s *shard) State() (*state.State, <-chan struct{}) { return &state.State{}, nil }
func (s *shard) Log(sdk.Level, string, ...any)          {}

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

func newTest(t *testing.T, more string) (*publication, *shard) {
	t.Helper()
	c, err := parse([]byte(`{"endpoints": ["http://127.0.0.1:1"], "prefix": "/c/"` + more + `}`))
	if err != nil {
		t.Fatal(err)
	}
	out := &shard{}
	return newPublication(c, out, validation.New()), out
}

func must(t *testing.T, p *publication, b etcd.Batch) {
	t.Helper()
	if err := p.handle(b); err != nil {
		t.Fatal(err)
	}
}

func TestReadme(t *testing.T) {
	blocks, config := readme.Example(t, 2)
	c, err := parse(config)
	if err != nil || len(c.Endpoints) != 3 || c.TLS == nil {
		t.Fatalf("%+v, %v", c, err)
	}
	out := &shard{}
	p := newPublication(c, out, validation.New())
	must(t, p, etcd.Batch{Whole: true, Put: []etcd.Pair{{Key: strings.TrimPrefix(blocks[1].Title, "yaml /coxswain/config/"), Value: []byte(blocks[1].Text)}}})
	if row := out.rows[kinds.VirtualService]["shop/web"]; row == nil || !out.synced || len(out.faults(t)) > 0 {
		t.Error(out.rows, out.faults(t))
	}
}

func TestConfig(t *testing.T) {
	for config, field := range map[string]string{
		`{}`: "endpoints", `{"endpoints": ["http://a"], "prefix": ""}`: "prefix", `{"endpoints": ["http://a"], "limits": {"objects": 0}}`: "limits.objects",
		`{"endpoints": ["http://a"], "write": true}`: "write",
	} {
		_, err := parse([]byte(config))
		var at *sdk.FieldError
		if !errors.As(err, &at) || at.Field != field {
			t.Errorf("%s: %v, not of %s", config, err, field)
		}
	}
	if got := newSource(Config{Access: etcd.Access{Endpoints: []string{"http://a"}}}).Writes(); len(got) > 0 {
		t.Errorf("writes: false takes writes of %v", got)
	}
}

const entry = "networking.istio.io/ServiceEntry/shop/"

func serviceEntry(name, spec string) etcd.Pair {
	return etcd.Pair{
		Key:   entry + name,
		Value: fmt.Appendf(nil, "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: %s, namespace: shop%s\n", name, spec),
	}
}

const good = "}\nspec: {hosts: [a.example], resolution: DNS, ports: [{number: 80, name: http, protocol: HTTP}]}"

// TestLastGood: what becomes faulty keeps what it was, in a list that is read anew, too; what can't
// be is told with its key and field.
func TestLastGood(t *testing.T) {
	p, out := newTest(t, `, "revision": "blue"`)
	must(t, p, etcd.Batch{
		Whole: true,
		Put:   []etcd.Pair{serviceEntry("a", good), serviceEntry("b", good), serviceEntry("green", ", labels: {istio.io/rev: green}"+good)},
	})
	if got := out.rows[kinds.ServiceEntry]; len(got) != 2 || got["shop/a"] == nil || got["shop/b"] == nil || got["shop/a"].Source != "etcd:/c/"+entry+"a:1:1" {
		t.Fatalf("%v", got)
	}
	at := func(key, value string) etcd.Pair { return etcd.Pair{Key: key, Value: []byte(value)} }
	faulty := []etcd.Pair{
		serviceEntry("a", "}\nspec: {hosts: [], ports: [{number: 80, name: http, protocol: HTTP}]}"),
		at(entry+"b", "apiVersion: networking.istio.io/v1\nkind: ["),
		at(entry+"c", string(serviceEntry("other", good).Value)),
		at(entry+"d", string(serviceEntry("d", good).Value)+"\n---\n"+string(serviceEntry("d", good).Value)),
		at(entry+"e", ""),
		at(entry+"f", "apiVersion: v1\nkind: Secret\nmetadata: {name: f, namespace: shop}\n"),
		at("networking.istio.io/Gateway/shop/g", string(serviceEntry("g", good).Value)),
		at("note", "hello"),
		at("v1/Secret/shop/h", "{}"),
		at(lead.Table+"/shop/lease", "{}"),
	}
	want := []string{
		"etcd:/c/networking.istio.io/Gateway/shop/g kind: is networking.istio.io/ServiceEntry, and the key says networking.istio.io/Gateway",
		"etcd:/c/" + entry + "a spec.hosts:", "etcd:/c/" + entry + "b ", "etcd:/c/" + entry + "c metadata: is of shop/other, and the key says shop/c",
		"etcd:/c/" + entry + "d has 2 objects", "etcd:/c/" + entry + "e has 0 objects", "etcd:/c/" + entry + "f is v1/Secret, and the key says",
		"etcd:/c/note the key is no GROUP/KIND/NAMESPACE/NAME", "etcd:/c/v1/Secret/shop/h the key is no",
	}
	for _, whole := range []bool{false, true} {
		must(t, p, etcd.Batch{Whole: whole, Put: faulty})
		got := out.faults(t)
		if len(got) != len(want) {
			t.Fatalf("%d faults, not %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
		}
		for i := range want {
			if !strings.HasPrefix(got[i], want[i]) {
				t.Errorf("%q does not begin with %q", got[i], want[i])
			}
		}
		if rows := out.rows[kinds.ServiceEntry]; len(rows) != 2 || rows["shop/a"] == nil || rows["shop/b"] == nil {
			t.Fatalf("%v", rows)
		}
	}
	must(t, p, etcd.Batch{
		Put:  []etcd.Pair{serviceEntry("a", good)},
		Gone: []string{entry + "b", entry + "c", entry + "d", entry + "e", entry + "f", "networking.istio.io/Gateway/shop/g", "note", "v1/Secret/shop/h"},
	})
	if got := out.faults(t); len(got) > 0 || len(out.rows[kinds.ServiceEntry]) != 1 {
		t.Error(got, out.rows)
	}
	said := out.said
	must(t, p, etcd.Batch{Put: []etcd.Pair{serviceEntry("a", good)}})
	if out.said != said {
		t.Error("what is the same is published again")
	}
	must(t, p, etcd.Batch{Put: []etcd.Pair{serviceEntry("a", ", labels: {istio.io/rev: green}"+good)}})
	if len(out.rows[kinds.ServiceEntry]) > 0 {
		t.Error("an object of another revision stays")
	}
}

// TestMerge has the examples of RFC 7386, appendix A.
func TestMerge(t *testing.T) {
	for _, c := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`}, {`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`}, {`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`}, {`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`}, {`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`}, {`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`}, {`{"a":"foo"}`, `null`, `null`}, {`{"a":"foo"}`, `"bar"`, `"bar"`}, {`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`}, {`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		var of [3]any
		for i, text := range c {
			if err := json.Unmarshal([]byte(text), &of[i]); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(of[2], merge(of[0], of[1])); diff != "" {
			t.Errorf("%s with %s: %s", c[0], c[1], diff)
		}
		var was any
		if _ = json.Unmarshal([]byte(c[0]), &was); !cmp.Equal(was, of[0]) {
			t.Errorf("%s was changed by %s", c[0], c[1])
		}
	}
}

// TestGiven: what can't be an object of the table is refused before etcd is asked.
func TestGiven(t *testing.T) {
	s := newSource(Config{Access: etcd.Access{Endpoints: []string{"http://127.0.0.1:1"}}, Writes: true})
	head := `"apiVersion": "networking.istio.io/v1beta1", "kind": "ServiceEntry"`
	for text, field := range map[string]string{
		`{"apiVersion": "security.istio.io/v1", "kind": "ServiceEntry"}`: "apiVersion",
		`{"apiVersion": "networking.istio.io/v1", "kind": "Gateway"}`:    "kind",
		`{` + head + `}`: "metadata",
		`{` + head + `, "metadata": {"name": "web"}}`:                      "metadata.namespace",
		`{` + head + `, "metadata": {"namespace": "shop"}}`:                "metadata.name",
		`{` + head + `, "metadata": {"namespace": "shop", "name": "web"}}`: "metadata.resourceVersion",
		`{` + head + `, "metadata": []}`:                                   "metadata",
		`[]`:                                                               "",
		`null`:                                                             "",
		`{"apiVersion": {}, "kind": 1, "metadata": {"resourceVersion": true}}`: "apiVersion",
	} {
		_, err := s.Update(t.Context(), kinds.ServiceEntry, []byte(text))
		var e *sdk.StoreError
		if !errors.As(err, &e) || e.Code != sdk.StoreInvalid || e.Field != field {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := s.Get(t.Context(), kinds.FaultTable, "shop", "web"); sdk.CodeOf(err) != sdk.StoreUnsupported {
		t.Error(err)
	}
	for _, name := range []string{"", "a/b"} {
		if _, err := s.Get(t.Context(), kinds.ServiceEntry, "shop", name); sdk.CodeOf(err) != sdk.StoreInvalid {
			t.Error(err)
		}
	}
}
