package consul

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
	"github.com/coxswain-mesh/coxswain/plugins/internal/registrytest"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestMain(m *testing.M) { wait.Main(m) }

// TestConformance: the suite passes on the plugin in the test's process, as a process of its own
// and as a module.
func TestConformance(t *testing.T) {
	w := newTwin(t)
	targets := append(plugintest.Built(t, "wasm"), plugintest.Memory(Plugin()))
	for i := range targets {
		targets[i].HTTP = []string{strings.TrimPrefix(w.URL, "http://")}
	}
	const each = 100
	plugintest.Conform(t, plugintest.Suite{
		Kind: "registry", Config: map[string]any{"address": w.URL, "interval": "10ms", "refresh": "1s"}, Many: 5000,
		BadConfigs: []any{`{"adress": "http://127.0.0.1:8500"}`, `{"address": 1}`, `{"address": "127.0.0.1:8500"}`},
		Source: func(rows int) error {
			w.change(func() {
				w.services = map[string][]entry{}
				for n := range rows {
					name := fmt.Sprintf("s%d", n/each)
					w.services[name] = append(w.services[name], at(name, n))
				}
			})
			return nil
		},
	}, targets...)
}

// begin starts the plugin on a twin and waits for its first list.
func begin(t *testing.T, w *twin, more map[string]any) *plugintest.Harness {
	t.Helper()
	config := map[string]any{"address": w.URL, "interval": "1ms", "maxRetry": "300ms", "wait": "2s"}
	maps.Copy(config, more)
	h := plugintest.Start(t, Plugin(), config)
	h.WaitSynced()
	return h
}

// has waits until a service's healthy endpoints are at these addresses.
func has(t *testing.T, h *plugintest.Harness, service string, addresses ...string) {
	t.Helper()
	registrytest.Has(t, h, service+".service.consul", addresses...)
}

// keeps watches for a while that nothing goes.
func keeps(t *testing.T, h *plugintest.Harness, while func() bool, service string, addresses ...string) {
	t.Helper()
	registrytest.Keeps(t, h, while, service+".service.consul", addresses...)
}

// asks returns a function that is true once so many questions more of a kind were asked.
func (w *twin) asks(n int, are func(*http.Request) bool) func() bool {
	before := w.questions(are)
	return func() bool { return w.questions(are) >= before+n }
}

func about(part string) func(*http.Request) bool {
	return func(r *http.Request) bool { return strings.Contains(r.URL.String(), part) }
}

// TestChanges: what comes, goes and changes is followed.
func TestChanges(t *testing.T) {
	w := newTwin(t)
	w.put("web", at("web", 1))
	h := begin(t, w, nil)
	has(t, h, "web", "10.0.0.1")
	w.put("web", at("web", 1), at("web", 2))
	has(t, h, "web", "10.0.0.1", "10.0.0.2")
	w.put("web", at("web", 1), at("web", 2, status(critical)))
	has(t, h, "web", "10.0.0.1")
	w.put("web", at("web", 2))
	has(t, h, "web", "10.0.0.2")
	w.put("other", at("other", 9))
	has(t, h, "other", "10.0.0.9")
	w.remove("web")
	h.WaitRows(state.Services, func(rows map[string]*sdk.Row) bool {
		return len(rows) == 1 && rows["default/other.service.consul"] != nil
	})
	has(t, h, "web")
}

// TestViewThatLacks: a view of Consul's that lacks for good what was registered while it began is
// compared with the servers' state, and not asked any more.
func TestViewThatLacks(t *testing.T) {
	w := newTwin(t)
	w.put("web", at("web", 1))
	w.alter(func() {
		w.apart = func(out http.ResponseWriter, r *http.Request) bool { // the view has web-1 and web-2, whatever there is
			q := r.URL.Query()
			if r.URL.Path != ofWeb || !q.Has("index") || q.Has("near") {
				return false
			}
			if q.Get("index") >= "50" {
				select {
				case <-time.After(200 * time.Millisecond):
				case <-r.Context().Done():
				}
			}
			out.Header().Set("X-Consul-Query-Backend", "streaming")
			return says(ofWeb, "50", jsonOf(at("web", 1), at("web", 2)))(out, r)
		}
	})
	h := begin(t, w, map[string]any{"wait": "1s", "refresh": "100ms"})
	has(t, h, "web", "10.0.0.1", "10.0.0.2")
	w.change(func() {
		w.services["web"], w.indexes["web"] = []entry{at("web", 1), at("web", 2), at("web", 3)}, 60
	})
	has(t, h, "web", "10.0.0.1", "10.0.0.2", "10.0.0.3")
	wait.For(t, "the view is asked no more", func() error {
		if w.questions(about("near=_agent")) == 0 {
			return errors.New("no question passes it by")
		}
		return nil
	})
	w.change(func() {
		w.services["web"], w.indexes["web"] = []entry{at("web", 1), at("web", 4), at("web", 5), at("web", 6)}, 70
	})
	has(t, h, "web", "10.0.0.1", "10.0.0.4", "10.0.0.5", "10.0.0.6")
}

// TestReplacedAtTheLimit: where there are as many instances as may be, one that comes in another's
// place is taken, whatever else waits for a place.
func TestReplacedAtTheLimit(t *testing.T) {
	w := newTwin(t)
	w.put("other", at("other", 9))
	h := begin(t, w, map[string]any{"maxInstances": 3})
	has(t, h, "other", "10.0.0.9")
	w.put("web", at("web", 1), at("web", 1), at("web", 1), at("web", 2))
	has(t, h, "web", "10.0.0.1")
	for n := 10; n < 20; n++ {
		w.put("other", at("other", n))
		has(t, h, "other", fmt.Sprintf("10.0.0.%d", n))
	}
}

// TestNothingIsEmptied: no answer that isn't certain takes anything away.
func TestNothingIsEmptied(t *testing.T) {
	text := func(status int, headers, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(out http.ResponseWriter, _ *http.Request) bool {
			for _, h := range strings.Fields(headers) {
				name, value, _ := strings.Cut(h, "=")
				out.Header().Set(name, value)
			}
			out.WriteHeader(status)
			_, _ = out.Write([]byte(body))
			return true
		}
	}
	const led = "X-Consul-Index=99 X-Consul-Knownleader=true X-Consul-Lastcontact=0"
	for name, instead := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"null":      text(200, led, "null"),
		"empty":     text(200, led, ""),
		"garbage":   text(200, led, "<html>"),
		"cut":       text(200, led, `[{"Node":{"Node":"n1"`),
		"no index":  text(200, "X-Consul-Knownleader=true X-Consul-Lastcontact=0", "[]"),
		"leader":    text(200, "X-Consul-Index=99 X-Consul-Knownleader=false X-Consul-Lastcontact=0", "[]"),
		"500":       text(500, "", "rpc error making call: No cluster leader"),
		"403":       text(403, "", "ACL not found"),
		"429":       text(429, "", "Your IP is issuing too many concurrent connections"),
		"elsewhere": text(302, "Location=http://127.0.0.1:1/", ""),
		"types":     text(200, led, `[{"Node":{"Node":7}}]`),
		"large":     text(200, led, `[`+strings.Repeat(" ", 3000)+`]`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTwin(t)
			w.put("web", at("web", 1))
			h := begin(t, w, map[string]any{"maxBytes": 2048})
			has(t, h, "web", "10.0.0.1")
			w.alter(func() { w.instead = instead })
			keeps(t, h, w.asks(5, about("/health/")), "web", "10.0.0.1")
			w.alter(func() { w.instead = nil })
			w.put("web", at("web", 1), at("web", 2))
			has(t, h, "web", "10.0.0.1", "10.0.0.2")
		})
	}
}

// TestServerIsBehind: one that was just started, and answers stale questions with the nothing that
// it knows, empties nothing; the first list waits for a leader.
func TestServerIsBehind(t *testing.T) {
	w := newTwin(t)
	w.put("web", at("web", 1))
	h := begin(t, w, nil)
	w.alter(func() { w.behind = true })
	keeps(t, h, w.asks(5, about("/health/")), "web", "10.0.0.1")

	late := plugintest.Start(t, Plugin(), map[string]any{"address": w.URL, "maxRetry": "300ms"})
	keeps(t, h, w.asks(8, about("/catalog/")), "web", "10.0.0.1")
	if late.Synced() {
		t.Error("a server without a leader has given a first list")
	}
	w.alter(func() { w.behind = false })
	late.WaitSynced()
	has(t, late, "web", "10.0.0.1")
}

// TestAnotherHistory: a server that begins anew has smaller indexes. What it has counts once it has
// said so for certain.
func TestAnotherHistory(t *testing.T) {
	w := newTwin(t)
	w.put("web", at("web", 1))
	w.put("old", at("old", 5))
	w.alter(func() { w.index = 1000 })
	h := begin(t, w, nil)
	w.alter(func() {
		w.index, w.services, w.indexes = 3, map[string][]entry{"web": {at("web", 2)}}, map[string]uint64{}
	})
	w.CloseClientConnections()
	has(t, h, "web", "10.0.0.2")
	has(t, h, "old")
	w.put("web", at("web", 2), at("web", 3))
	has(t, h, "web", "10.0.0.2", "10.0.0.3")
}

// TestRights: what a token may not see any more stays, and what is gone goes; a token that may see
// nothing has no first list.
func TestRights(t *testing.T) {
	w := newTwin(t)
	w.put("web", at("web", 1))
	w.put("other", at("other", 5))
	w.put("third", at("third", 6))
	h := begin(t, w, nil)
	w.alter(func() { w.filtered["web"] = true })
	h.WaitRows(instances.Faults, func(rows map[string]*sdk.Row) bool {
		r := rows["consul:web:hidden"]
		return r != nil && strings.Contains(string(r.Payload), "hidden by Consul's ACLs")
	})
	keeps(t, h, w.asks(3, about("/health/service/web")), "web", "10.0.0.1")
	w.remove("other")
	has(t, h, "other")
	w.alter(func() { delete(w.filtered, "web") })
	w.put("web", at("web", 1), at("web", 2))
	has(t, h, "web", "10.0.0.1", "10.0.0.2")
	h.WaitRows(instances.Faults, func(rows map[string]*sdk.Row) bool { return len(rows) == 0 })

	w.alter(func() { w.filtered["web"], w.filtered["third"] = true, true })
	blind := plugintest.Start(t, Plugin(), map[string]any{"address": w.URL, "maxRetry": "300ms"})
	blind.WaitLog(func(_ sdk.Level, _ string, fields map[string]string) bool {
		return strings.Contains(fields["error"], "may see nothing")
	})
	if blind.Synced() {
		t.Error("a token that may see nothing has a first list")
	}
}

// TestTurns: more services than may be asked about at once are followed, too, and never more
// questions are under way.
func TestTurns(t *testing.T) {
	w := newTwin(t)
	const services = 40
	for s := range services {
		name := fmt.Sprintf("s%d", s)
		w.put(name, at(name, s))
	}
	under, worst := 0, 0
	w.Config.Handler = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
			w.mu.Lock()
			if under++; under > worst {
				worst = under
			}
			w.mu.Unlock()
			next.ServeHTTP(out, r)
			w.mu.Lock()
			under--
			w.mu.Unlock()
		})
	}(w.Config.Handler)
	h := begin(t, w, map[string]any{"watches": 4, "refresh": "400ms"})
	for round := range 3 {
		for s := range services {
			name := fmt.Sprintf("s%d", s)
			w.put(name, at(name, s), at(name, 1000*(round+1)+s))
		}
		for s := range services {
			has(t, h, fmt.Sprintf("s%d", s), at("", s).Service.Address, at("", 1000*(round+1)+s).Service.Address)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if worst > 2*4 { // those that were taken back may still be on their way out; TestSchedule counts exactly
		t.Errorf("%d questions were under way at once", worst)
	}
}

// TestQuestions: what the config says is asked.
func TestQuestions(t *testing.T) {
	w := newTwin(t)
	w.put("web", at("web", 1, func(e *entry) { e.Service.Tags = []string{"prod"} }))
	w.put("dev", at("dev", 2))
	w.put("web-old", at("web-old", 3, func(e *entry) { e.Service.Tags = []string{"prod"} }))
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("first\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := begin(t, w, map[string]any{
		"tokenFile": file, "datacenters": []string{"east"}, "namespace": "shop", "partition": "p1",
		"services": map[string]any{
			"exclude": []string{"*-old"}, "tags": []string{"prod"}, "nodeMeta": map[string]string{"rack": "7"},
			"filter": "Node.Node != n9",
		},
	})
	has(t, h, "web", "10.0.0.1")
	w.mu.Lock()
	for _, r := range w.asked {
		q := r.URL.Query()
		if q.Get("dc") != "east" || q.Get("ns") != "shop" || q.Get("partition") != "p1" || q.Get("node-meta") != "rack:7" ||
			r.Header.Get("X-Consul-Token") != "first" {
			t.Errorf("%s, %v", r.URL, r.Header)
		}
		if want := `(Node.Node != n9) and "prod" in Service.Tags`; strings.Contains(r.URL.Path, "/health/") && q.Get("filter") != want {
			t.Errorf("filter %q, not %q", q.Get("filter"), want)
		}
		if q.Has("index") != q.Has("stale") || q.Has("index") == q.Has("consistent") {
			t.Errorf("%s: the first question is consistent, further ones are stale", r.URL)
		}
		if name := strings.TrimPrefix(r.URL.Path, "/v1/health/service/"); name == "dev" || name == "web-old" {
			t.Errorf("%s was asked about", name)
		}
	}
	w.mu.Unlock()
	if err := os.WriteFile(file, []byte("second\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.put("web", at("web", 4, func(e *entry) { e.Service.Tags = []string{"prod"} }))
	has(t, h, "web", "10.0.0.4")
	// The question that was under way had the first token; the next one has the other.
	second := func(r *http.Request) bool { return r.Header.Get("X-Consul-Token") == "second" }
	keeps(t, h, func() bool { return w.questions(second) > 0 }, "web", "10.0.0.4")
	w.put("web", at("web", 4)) // it has lost its tag
	has(t, h, "web")
}

// TestDatacenters: instances of several are one service's, and one that is away loses nothing.
func TestDatacenters(t *testing.T) {
	w := newTwin(t)
	w.put("web", at("web", 1))
	away := false
	w.instead = func(out http.ResponseWriter, r *http.Request) bool {
		dc := r.URL.Query().Get("dc")
		if dc == "west" && away {
			http.Error(out, "No path to datacenter", http.StatusInternalServerError)
			return true
		}
		if dc != "west" || !strings.Contains(r.URL.Path, "/health/") {
			return false
		}
		out.Header().Set("X-Consul-Index", fmt.Sprint(w.index))
		out.Header().Set("X-Consul-Knownleader", "true")
		out.Header().Set("X-Consul-Lastcontact", "0")
		_, _ = out.Write(
			[]byte(`[{"Node":{"Node":"w1","Address":"10.7.0.1","Datacenter":"west"},"Service":{"ID":"web-w","Service":"web","Port":8080},"Checks":[]}]`),
		)
		return true
	}
	h := begin(t, w, map[string]any{"datacenters": []string{"east", "west"}})
	has(t, h, "web", "10.0.0.1", "10.7.0.1")
	w.alter(func() { away = true })
	keeps(t, h, w.asks(4, about("dc=west")), "web", "10.0.0.1", "10.7.0.1")
	w.put("web", at("web", 2))
	has(t, h, "web", "10.0.0.2", "10.7.0.1")
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct{ config, field, reason string }{
		{`{"adress": ""}`, "adress", `did you mean "address"`},
		{`{"address": "consul:8500"}`, "address", "no URL"},
		{`{"address": "http://"}`, "address", "no host"},
		{`{"address": "http://u:p@a"}`, "address", "a user"},
		{`{"token": "a", "tokenFile": "b"}`, "tokenFile", "one is enough"},
		{`{"tls": {"caFile": "a"}}`, "tls", "https://"},
		{`{"address": "https://a", "tls": {"certFile": "a"}}`, "tls", "belong together"},
		{`{"address": "https://a", "tls": {"caFile": "/nowhere"}}`, "tls", "/nowhere"},
		{`{"wait": "1ms"}`, "wait", "between 1s and 10m"},
		{`{"wait": "soon"}`, "wait", "no duration"},
		{`{"watches": 1}`, "watches", "between 2 and 1000"},
		{`{"maxBytes": 1}`, "maxBytes", "less than 1024"},
		{`{"servicePort": 70000}`, "servicePort", "70000"},
		{`{"datacenters": ["a", "a"]}`, "datacenters[1]", "twice"},
		{`{"healthy": ["pasing"]}`, "healthy[0]", `did you mean "passing"`},
		{`{"services": {"include": ["["]}}`, "services.include[0]", "no glob"},
		{`{"host": "consul"}`, "host", "{service}.service.consul"},
		{`{"host": "{service}.{zone}"}`, "host", "no DNS name"},
		{`{"protocol": "SMTP"}`, "protocol", "none of HTTP"},
		{`{"meshNamespace": "a/b"}`, "meshNamespace", "no namespace"},
	} {
		field, reason := plugintest.Refusal(t, Plugin(), c.config)
		if field != c.field || !strings.Contains(reason, c.reason) {
			t.Errorf("%s\n got %s: %s\nwant %s: …%s…", c.config, field, reason, c.field, c.reason)
		}
	}
}
