package eureka

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
		// an answer for a module has less than 1 MiB
		Kind: "registry", Config: map[string]any{"servers": []string{w.URL + "/eureka"}, "interval": "50ms", "allowEmpty": true, "keep": "0s"}, Many: 1500,
		BadConfigs: []any{`{"server": "http://127.0.0.1:8761"}`, `{"servers": 1}`, `{"servers": []}`, `{"servers": ["127.0.0.1:8761"]}`},
		Source: func(rows int) error {
			w.change(func() {
				w.have, w.changed = map[string]record{}, nil
				for n := range rows {
					w.register(at(fmt.Sprintf("s%d", n/each), n), true)
				}
				w.changed = nil
			})
			return nil
		},
	}, targets...)
}

// begin starts the plugin on twins and waits for its first list.
func begin(t *testing.T, more map[string]any, twins ...*twin) *plugintest.Harness {
	t.Helper()
	h := plugintest.Start(t, Plugin(), configOf(more, twins...))
	h.WaitSynced()
	return h
}

func configOf(more map[string]any, twins ...*twin) map[string]any {
	config := map[string]any{"interval": "50ms", "maxRetry": "300ms", "timeout": "1m"}
	var servers []string
	for _, w := range twins {
		servers = append(servers, w.URL+"/eureka")
	}
	config["servers"] = servers
	maps.Copy(config, more)
	return config
}

// has waits until a service's healthy endpoints are at these addresses.
func has(t *testing.T, h *plugintest.Harness, service string, addresses ...string) {
	t.Helper()
	registrytest.Has(t, h, service+".eureka", addresses...)
}

// keeps watches that nothing goes while the server is asked so many times more for a path.
func (w *twin) keeps(t *testing.T, h *plugintest.Harness, path string, times int, service string, addresses ...string) {
	t.Helper()
	before := w.count(path)
	registrytest.Keeps(t, h, func() bool { return w.count(path) >= before+times }, service+".eureka", addresses...)
}

// TestChanges: what comes, goes and changes is followed, by what changed alone.
func TestChanges(t *testing.T) {
	w := newTwin(t)
	w.put(at("web", 1))
	h := begin(t, nil, w)
	has(t, h, "web", "10.0.0.1")
	w.put(at("web", 2))
	has(t, h, "web", "10.0.0.1", "10.0.0.2")
	w.put(at("web", 2, with("status", down)))
	has(t, h, "web", "10.0.0.1")
	w.put(at("web", 2, with("status", up)))
	w.remove(at("web", 1))
	has(t, h, "web", "10.0.0.2")
	w.put(at("other", 9))
	has(t, h, "other", "10.0.0.9")
	w.remove(at("web", 2))
	h.WaitRows(state.Services, func(rows map[string]*sdk.Row) bool {
		return len(rows) == 1 && rows["default/other.eureka"] != nil
	})
	if n := w.count("/apps"); n != 1 {
		t.Errorf("everything was asked for %d times", n)
	}
}

// TestMissed: what the server tells no more is found by its hash, and, where that is the same, by
// asking for everything.
func TestMissed(t *testing.T) {
	w := newTwin(t)
	w.put(at("web", 1), at("web", 2))
	h := begin(t, map[string]any{"full": "1s"}, w)
	has(t, h, "web", "10.0.0.1", "10.0.0.2")
	w.change(func() { w.register(at("web", 3), true); w.changed = nil })
	has(t, h, "web", "10.0.0.1", "10.0.0.2", "10.0.0.3")
	w.change(func() { // one came, one went
		delete(w.have, at("web", 2).key())
		w.register(at("web", 4), true)
		w.changed = nil
	})
	has(t, h, "web", "10.0.0.1", "10.0.0.3", "10.0.0.4")
}

// TestAway: after longer than the server tells changes for, everything is asked for.
func TestAway(t *testing.T) {
	w := newTwin(t)
	w.put(at("web", 1), at("web", 2))
	h := begin(t, map[string]any{"full": "1h", "deltaWindow": "300ms"}, w)
	has(t, h, "web", "10.0.0.1", "10.0.0.2")
	w.change(func() {
		w.instead = func(out http.ResponseWriter, _ *http.Request) bool { out.WriteHeader(503); return true }
	})
	w.remove(at("web", 2))
	w.put(at("web", 3))
	w.forget()
	w.keeps(t, h, "/apps", 3, "web", "10.0.0.1", "10.0.0.2")
	w.change(func() { w.instead = nil })
	has(t, h, "web", "10.0.0.1", "10.0.0.3")
}

// TestStartedAnew: a server that was started anew takes nothing away until those whom it lacks have
// had the time of their lease to register.
func TestStartedAnew(t *testing.T) {
	t.Parallel()
	one, two, three := at("web", 1), at("web", 2), at("web", 3)
	w := newTwin(t)
	w.put(one, two, three)
	h := begin(t, map[string]any{"keep": "10s"}, w)
	has(t, h, "web", "10.0.0.1", "10.0.0.2", "10.0.0.3")
	w.restart()
	w.keeps(t, h, "/apps", 3, "web", "10.0.0.1", "10.0.0.2", "10.0.0.3")
	w.restart(one)
	w.keeps(t, h, "/delta", 5, "web", "10.0.0.1", "10.0.0.2", "10.0.0.3")
	h.WaitRows("faults", func(rows map[string]*sdk.Row) bool { return rows["eureka:web:missing"] != nil })
	w.change(func() { w.register(two, false) })
	has(t, h, "web", "10.0.0.1", "10.0.0.2") // the third has had its time
	h.WaitRows("faults", func(rows map[string]*sdk.Row) bool { return len(rows) == 0 })
	w.remove(two)
	has(t, h, "web", "10.0.0.1")
}

// TestEmpty: a server that has nothing at all is not believed, unless it is said that it may be.
func TestEmpty(t *testing.T) {
	w := newTwin(t)
	h := plugintest.Start(t, Plugin(), configOf(nil, w))
	for deadline := time.Now().Add(10 * time.Second); w.count("/apps") < 3; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it isn't asked again")
		}
	}
	w.put(at("web", 1))
	h.WaitSynced()
	has(t, h, "web", "10.0.0.1")

	empty := newTwin(t)
	begin(t, map[string]any{"allowEmpty": true}, empty)
}

// TestServers: where one fails, the next is asked, and what it lacks stays for a while.
func TestServers(t *testing.T) {
	t.Parallel()
	one, two := newTwin(t), newTwin(t)
	for _, w := range []*twin{one, two} {
		w.put(at("web", 1))
	}
	one.put(at("web", 2))
	h := begin(t, map[string]any{"keep": "10s"}, one, two)
	has(t, h, "web", "10.0.0.1", "10.0.0.2")
	one.change(func() {
		one.instead = func(out http.ResponseWriter, _ *http.Request) bool { out.WriteHeader(500); return true }
	})
	two.keeps(t, h, "/delta", 5, "web", "10.0.0.1", "10.0.0.2")
	two.put(at("web", 3))
	has(t, h, "web", "10.0.0.1", "10.0.0.3")
}

// TestNothingIsEmptied: no answer that isn't certain takes anything away.
func TestNothingIsEmptied(t *testing.T) {
	text := func(status int, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(out http.ResponseWriter, _ *http.Request) bool {
			out.WriteHeader(status)
			_, _ = out.Write([]byte(body))
			return true
		}
	}
	for name, instead := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"null":    text(200, "null"),
		"none":    text(200, ""),
		"garbage": text(200, "<html>"),
		"other":   text(200, `{"services": []}`),
		"empty":   text(200, `{"applications": {"versions__delta": "1", "apps__hashcode": "", "application": []}}`),
		"less":    text(200, `{"applications": {"versions__delta": "1", "apps__hashcode": "UP_2_", "application": []}}`),
		"cut":     text(200, `{"applications": {"versions__delta": "1", "apps__hashcode": "UP_2_", "application": [{"name": "WEB"`),
		"500":     text(500, "oops"),
		"401":     text(401, ""),
		"403":     text(403, ""),
		"404":     text(404, ""),
		"elsewhere": func(out http.ResponseWriter, r *http.Request) bool {
			http.Redirect(out, r, "/", http.StatusFound)
			return true
		},
		"large":    text(200, `{"applications": {"application": [{"name": "`+strings.Repeat("x", 70<<10)),
		"hangs up": func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTwin(t)
			w.put(at("web", 1), at("web", 2))
			h := begin(t, map[string]any{"maxBytes": 64 << 10, "deltaWindow": "1ms"}, w)
			has(t, h, "web", "10.0.0.1", "10.0.0.2")
			w.change(func() { w.instead = instead })
			w.keeps(t, h, "", 4, "web", "10.0.0.1", "10.0.0.2")
			w.change(func() { w.instead = nil })
			w.put(at("web", 3))
			has(t, h, "web", "10.0.0.1", "10.0.0.2", "10.0.0.3")
		})
	}
}

// TestNoChanges: a server that doesn't tell what changed is asked for everything.
func TestNoChanges(t *testing.T) {
	w := newTwin(t)
	w.change(func() {
		w.instead = func(out http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, "/delta") {
				out.WriteHeader(403)
				return true
			}
			return false
		}
	})
	w.put(at("web", 1))
	h := begin(t, nil, w)
	w.put(at("web", 2))
	has(t, h, "web", "10.0.0.1", "10.0.0.2")
	if n := w.count("/delta"); n != 1 {
		t.Errorf("changes were asked for %d times", n)
	}
}

// TestBroken: an instance that can't be read any more stays what it was; a new one harms nobody,
// and each is counted.
func TestBroken(t *testing.T) {
	w := newTwin(t)
	w.put(at("web", 1), at("web", 2), at("web", 3))
	h := begin(t, nil, w)
	has(t, h, "web", "10.0.0.1", "10.0.0.2", "10.0.0.3")
	w.put(
		at("web", 1, with("ipAddr", "???")), at("web", 2, with("port", map[string]any{"$": 70000})), at("web", 3, with("hostName", []int{1})),
		at("web", 4, with("vipAddress", 5)), at("web", 5),
	)
	has(t, h, "web", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.5")
	h.WaitRows("faults", func(rows map[string]*sdk.Row) bool {
		record := rows["eureka:web:record"]
		return rows["eureka:web:address"] != nil && rows["eureka:web:port"] != nil && record != nil && strings.Contains(string(record.Payload), `"left":2`)
	})
	w.remove(at("web", 1), at("web", 2), at("web", 3), at("web", 4))
	has(t, h, "web", "10.0.0.5")
	h.WaitRows("faults", func(rows map[string]*sdk.Row) bool { return len(rows) == 0 })
}

// TestPassword is read anew for each question.
func TestPassword(t *testing.T) {
	w, want := newTwin(t), "first"
	w.change(func() {
		w.instead = func(out http.ResponseWriter, r *http.Request) bool {
			user, password, _ := r.BasicAuth()
			if ok := user == "mesh" && password == want && r.Header.Get("Accept") == "application/json"; ok {
				return false
			}
			out.WriteHeader(401)
			return true
		}
	})
	file := filepath.Join(t.TempDir(), "password")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	w.put(at("web", 1))
	h := begin(t, map[string]any{"username": "mesh", "passwordFile": file}, w)
	has(t, h, "web", "10.0.0.1")
	w.change(func() { want = "second" })
	w.put(at("web", 2))
	w.keeps(t, h, "/apps", 2, "web", "10.0.0.1")
	write("second")
	has(t, h, "web", "10.0.0.1", "10.0.0.2")
}

// TestBalanced: two servers behind one name, which answer in turn. What one of them lacks stays,
// and what is taken out goes.
func TestBalanced(t *testing.T) {
	one, two, door := newTwin(t), newTwin(t), newTwin(t)
	two.clock = 1000 // leases of its own
	one.put(at("web", 1), at("web", 2))
	two.change(func() {
		for _, r := range []record{at("web", 1), at("web", 2)} {
			r["lastDirtyTimestamp"] = one.have[r.key()]["lastDirtyTimestamp"]
			two.register(r, false)
		}
		two.register(at("web", 3), true) // the other one doesn't know it yet
	})
	door.instead = func(out http.ResponseWriter, r *http.Request) bool {
		[]*twin{one, two}[len(door.asked)%2].answer(out, r)
		return true
	}
	h := begin(t, nil, door)
	has(t, h, "web", "10.0.0.1", "10.0.0.2", "10.0.0.3")
	door.keeps(t, h, "", 10, "web", "10.0.0.1", "10.0.0.2", "10.0.0.3")
	for _, w := range []*twin{one, two} {
		w.put(at("web", 3))
		w.remove(at("web", 1))
	}
	has(t, h, "web", "10.0.0.2", "10.0.0.3")
}
