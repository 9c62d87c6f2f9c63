package addresses

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

func made(t *testing.T, config string) *Config {
	t.Helper()
	c, err := parse([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

func of(key string, created int64, hosts string, has ...string) *entry {
	e := &entry{key: key, created: created, spec: &networking.ServiceEntry{Hosts: strings.Fields(hosts), Resolution: networking.ServiceEntry_DNS}}
	for _, a := range has {
		host, value, _ := strings.Cut(a, " ")
		e.has = append(e.has, kinds.Address{Host: host, Value: value})
	}
	return e
}

// texts are HOST VALUE of addresses.
func texts(list []kinds.Address) (out []string) {
	for _, a := range list {
		out = append(out, a.Host+" "+a.Value)
	}
	return out
}

// TestHosts: who is given addresses. Each line was tried on an istiod.
func TestHosts(t *testing.T) {
	label := func(v string) map[string]string { return map[string]string{optOut: v} }
	for name, c := range map[string]struct {
		e    *entry
		want string
	}{
		"names":               {of("", 0, "a b a"), "a b"},
		"wildcards":           {of("", 0, "*.a b"), "b"},
		"wildcards looked up": {&entry{spec: &networking.ServiceEntry{Hosts: []string{"*.a"}, Resolution: networking.ServiceEntry_DYNAMIC_DNS}}, "*.a"},
		"static":              {&entry{spec: &networking.ServiceEntry{Hosts: []string{"a"}, Resolution: networking.ServiceEntry_STATIC}}, "a"},
		"wherever":            {&entry{spec: &networking.ServiceEntry{Hosts: []string{"a"}}, labels: label("true")}, ""},
		"addresses of its own": {&entry{
			labels: label("true"),
			spec:   &networking.ServiceEntry{Hosts: []string{"a"}, Resolution: networking.ServiceEntry_DNS, Addresses: []string{"0.0.0.0"}},
		}, ""},
		"who doesn't want any": {
			&entry{labels: label("false"), spec: &networking.ServiceEntry{Hosts: []string{"a"}, Resolution: networking.ServiceEntry_DNS}},
			"",
		},
		"who says it wants some": {
			&entry{labels: label("true"), spec: &networking.ServiceEntry{Hosts: []string{"a"}, Resolution: networking.ServiceEntry_DNS}},
			"a",
		},
	} {
		if got := strings.Join(c.e.hosts(), " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestChoose(t *testing.T) {
	c := made(t, "{}")
	first := c.choose([]*entry{of("a/web", 1, "web api")})["a/web"]
	if len(first) != 4 || first[0].Host != "web" || !strings.HasPrefix(first[0].Value, "240.240.") ||
		!strings.HasPrefix(first[1].Value, "2001:2:") || first[2].Host != "api" {
		t.Fatal(first)
	}
	others := []*entry{of("b/x", 1, "x"), of("a/web", 2, "web api"), of("c/y", 3, "y")}
	if got := c.choose(others)["a/web"]; !slices.Equal(got, first) {
		t.Errorf("beside others %v, not %v", got, first)
	}
	owner := of("b/owner", 9, "own")
	owner.spec.Addresses = []string{first[0].Value}
	if got := c.choose([]*entry{of("a/web", 1, "web", texts(first[:2])...), owner}); len(got["b/owner"]) > 0 || !slices.Equal(got["a/web"], first[1:2]) {
		t.Errorf("who has declared an address: %v", got)
	}
	old, young := of("z/old", 1, "h", "h 240.240.0.7"), of("a/young", 2, "h", "h 240.240.0.7")
	got := c.choose([]*entry{young, old})
	if !slices.Equal(texts(got["z/old"]), []string{"h 240.240.0.7"}) || len(got["a/young"]) != 2 || got["a/young"][0].Value == "240.240.0.7" {
		t.Errorf("of two with the same: %v", got)
	}
	if got := texts(c.choose([]*entry{
		of("a/web", 1, "api", "web 240.240.0.1", "api 240.240.0.2", "api 10.0.0.1"),
	})["a/web"]); !slices.Equal(got, []string{"api 240.240.0.2", "api 10.0.0.1"}) {
		t.Errorf("a host that went, and addresses of other ranges: %v", got)
	}
	if got := c.choose([]*entry{of("a/web", 1, "*.web", "*.web 240.240.0.1")})["a/web"]; len(got) > 0 {
		t.Errorf("no longer wanted: %v", got)
	}
}

// TestFull: each address of a range but its first is given once, whatever the order; then there are
// none.
func TestFull(t *testing.T) {
	c := made(t, `{"ipv4": "10.9.9.4/30", "ipv6": ""}`)
	entries := []*entry{of("a", 1, "a"), of("b", 2, "b"), of("c", 3, "c"), of("d", 4, "d")}
	given := map[string]bool{}
	for _, list := range c.choose(entries) {
		for _, a := range list {
			given[a.Value] = true
		}
	}
	if got := slices.Sorted(maps.Keys(given)); !slices.Equal(got, []string{"10.9.9.5", "10.9.9.6", "10.9.9.7"}) {
		t.Error(got)
	}
}

func TestConfig(t *testing.T) {
	for config, field := range map[string]string{
		`{"ipv4": "2001:2::/48"}`: "ipv4", `{"ipv4": "10.0.0.1"}`: "ipv4", `{"ipv4": "10.0.0.0/31"}`: "ipv4",
		`{"ipv6": "10.0.0.0/8"}`: "ipv6", `{"ipv": ""}`: "ipv", `{"lease": "1"}`: "lease",
		`{"lease": "2h"}`: "lease", `{"namespace": ""}`: "namespace",
	} {
		_, err := parse([]byte(config))
		var at *sdk.FieldError
		if !errors.As(err, &at) || at.Field != field {
			t.Errorf("%s: %v", config, err)
		}
	}
}

// store keeps one object's text and version.
type store struct {
	mu      sync.Mutex
	object  map[string]any
	refuse  int
	written chan string
}

func (s *store) answer(m *pb.Store) *pb.Stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Verb == pb.VerbGet {
		text, _ := json.Marshal(s.object)
		return &pb.Stored{Object: text}
	}
	if s.refuse > 0 {
		s.refuse--
		return &pb.Stored{Code: sdk.StoreConflict, Error: "it has changed"}
	}
	s.object = map[string]any{}
	if err := json.Unmarshal(m.Object, &s.object); err != nil {
		return &pb.Stored{Code: sdk.StoreInvalid, Error: err.Error()}
	}
	s.written <- string(m.Object)
	return &pb.Stored{Object: m.Object}
}

// TestController: a conflict is tried again, the rest of the object stays as it is, and what is
// written is not written again, be it read back late.
func TestController(t *testing.T) {
	h := plugintest.Start(t, Plugin(), []byte(`{"alone": true}`))
	s := &store{
		object: map[string]any{"metadata": map[string]any{"finalizers": []string{"x"}}, "status": map[string]any{"conditions": []string{"c"}}},
		refuse: 1, written: make(chan string, 10),
	}
	h.OnStore(s.answer)
	payload, err := kinds.Encode(of("", 0, "web.example").spec)
	if err != nil {
		t.Fatal(err)
	}
	row := func(annotations map[string]string) *sdk.Row {
		return &sdk.Row{Key: "shop/web", Payload: payload, Annotations: annotations}
	}
	h.Update(kinds.ServiceEntry, []*sdk.Row{row(nil)})
	got := <-s.written
	for _, part := range []string{`"finalizers":["x"]`, `"conditions":["c"]`, `{"host":"web.example","value":"240.240.`} {
		if !strings.Contains(got, part) {
			t.Errorf("%s is not in %s", part, got)
		}
	}
	status, _ := json.Marshal(s.object["status"].(map[string]any)["addresses"])
	h.Update(kinds.ServiceEntry, []*sdk.Row{row(map[string]string{"other": "change"})})
	h.Update(kinds.ServiceEntry, []*sdk.Row{row(map[string]string{kinds.AutoAddresses: string(status)})})
	h.Update(kinds.ServiceEntry, []*sdk.Row{
		{Key: "shop/web", Payload: payload, Labels: map[string]string{optOut: "false"}, Annotations: map[string]string{kinds.AutoAddresses: string(status)}},
	})
	if got := <-s.written; !strings.Contains(got, `"addresses":[]`) {
		t.Errorf("after what is no longer wanted: %s", got)
	}
}

func TestReadme(t *testing.T) {
	blocks, _ := readme.Example(t, 1)
	if text := fmt.Sprint(blocks[0]); !strings.Contains(text, kinds.ServiceEntry) {
		t.Error("the example doesn't grant the table")
	}
}
