package nacos

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/coxswain-mesh/coxswain/plugins/internal/registrytest"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestMain(m *testing.M) { wait.Main(m) }

// TestConformance: the suite passes on the plugin in the test's process.
func TestConformance(t *testing.T) {
	w := newTwin(t)
	const each = 100
	plugintest.Conform(t, plugintest.Suite{
		Kind: "registry", Config: configOf(map[string]any{"keep": "0s"}, w), Many: 10_000,
		BadConfigs: []any{`{"server": "127.0.0.1:8848"}`, `{"servers": 1}`, `{"servers": []}`, `{"servers": ["127.0.0.1:8848/nacos"]}`},
		Source: func(rows int) error {
			services := map[key][]record{}
			for n := range rows {
				k := named(fmt.Sprintf("s%d", n/each))
				services[k] = append(services[k], at(n))
			}
			w.change(func() {
				for k := range w.services {
					if services[k] == nil {
						delete(w.services, k)
						w.push(k)
					}
				}
				for k, all := range services {
					w.services[k] = all
					w.push(k)
				}
			})
			return nil
		},
	}, plugintest.Memory(Plugin()))
}

// begin starts the plugin on twins and waits for its first list.
func begin(t *testing.T, more map[string]any, twins ...*twin) *plugintest.Harness {
	t.Helper()
	h := plugintest.Start(t, Plugin(), configOf(more, twins...))
	h.WaitSynced()
	return h
}

func configOf(more map[string]any, twins ...*twin) map[string]any {
	var servers []string
	for _, w := range twins {
		servers = append(servers, w.address)
	}
	config := map[string]any{
		"servers": servers, "grpcOffset": 0, "host": "{service}.nacos", "interval": "50ms", "maxRetry": "300ms",
		"timeout": "1m", "keep": "2s",
	}
	maps.Copy(config, more)
	return config
}

// has waits until a service's healthy endpoints are at these addresses.
func has(t *testing.T, h *plugintest.Harness, service string, addresses ...string) {
	t.Helper()
	registrytest.Has(t, h, service+".nacos", addresses...)
}

// faulty waits until the table of faults has exactly these, each a service and a reason.
func faulty(t *testing.T, h *plugintest.Harness, want ...string) {
	t.Helper()
	h.WaitRows("faults", func(rows map[string]*sdk.Row) bool {
		return slices.Equal(slices.Sorted(maps.Keys(rows)), want)
	})
}

// keeps watches that nothing goes while the server is asked so many times more for something.
func (w *twin) keeps(t *testing.T, h *plugintest.Harness, kind string, times int, service string, addresses ...string) {
	t.Helper()
	before := w.count(kind)
	registrytest.Keeps(t, h, func() bool { return w.count(kind) >= before+times }, service+".nacos", addresses...)
}

// until waits for what a twin shows.
func (w *twin) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	registrytest.Until(t, "it did not come to that: "+what, func() (ok bool) {
		w.change(func() { ok = is() })
		return ok
	})
}

// TestChanges: what comes, goes and changes is followed by what the server tells, which is told
// that it came.
func TestChanges(t *testing.T) {
	w := newTwin(t)
	w.set("web", at(1))
	h := begin(t, map[string]any{"keep": "300ms"}, w)
	has(t, h, "web", "10.0.0.1")
	w.set("web", at(1), at(2))
	has(t, h, "web", "10.0.0.1", "10.0.0.2")
	w.set("web", at(1), at(2, with("healthy", false)))
	has(t, h, "web", "10.0.0.1")
	w.set("web", at(1, with("enabled", false)), at(2))
	has(t, h, "web", "10.0.0.2")
	w.set("other", at(9))
	has(t, h, "other", "10.0.0.9")
	w.set("web")
	has(t, h, "web")
	w.forget("web")
	h.WaitRows(state.Services, func(rows map[string]*sdk.Row) bool { return len(rows) == 1 && rows["default/other.nacos"] != nil })
	w.until(t, "nobody wants web any more", func() bool {
		for _, c := range w.known {
			if c.wants[named("web")] {
				return false
			}
		}
		return true
	})
	if n := w.count(subscribe); n != 3 { // both, and web no more
		t.Errorf("it was asked for services %d times", n)
	}
	w.until(t, "each thing told is answered", func() bool { return len(w.acks) == w.pushes })
}

// TestSilent: what the server doesn't tell is found by asking.
func TestSilent(t *testing.T) {
	w := newTwin(t)
	w.silent = true
	w.set("web", at(1), at(2))
	h := begin(t, map[string]any{"refresh": "1s", "keep": "1h"}, w)
	has(t, h, "web", "10.0.0.1", "10.0.0.2")
	w.set("web", at(1), at(3))
	has(t, h, "web", "10.0.0.1", "10.0.0.3")
}

// TestDetection: the server asks whether its client lives, and is answered.
func TestDetection(t *testing.T) {
	w := newTwin(t)
	w.set("web", at(1))
	begin(t, nil, w)
	w.change(func() {
		for _, c := range w.known {
			_ = c.send(encode(clientDetection, map[string]any{"requestId": "7", "module": "internal"}))
		}
	})
	select {
	case got := <-w.acks:
		if got != "ClientDetectionResponse" {
			t.Errorf("%s", got)
		}
	case <-time.After(10 * time.Second):
		t.Error("no answer")
	}
}

// TestAway: what changed while there was no connection counts once there is one; what went stays
// for a while.
func TestAway(t *testing.T) {
	t.Parallel()
	w := newTwin(t)
	w.set("web", at(1), at(2))
	h := begin(t, map[string]any{"keep": "10s"}, w)
	has(t, h, "web", "10.0.0.1", "10.0.0.2")
	w.change(func() {
		w.instead = func(*payload, map[string]any) (*payload, error) { return fails(300, "Server is starting"), nil }
		w.hangUp()
		w.services[named("web")] = []record{at(1), at(3)}
	})
	w.keeps(t, h, serverCheck, 4, "web", "10.0.0.1", "10.0.0.2")
	w.change(func() { w.instead = nil })
	has(t, h, "web", "10.0.0.1", "10.0.0.2", "10.0.0.3")
	faulty(t, h, "nacos:web.nacos:missing")
	has(t, h, "web", "10.0.0.1", "10.0.0.3")
	faulty(t, h)
	w.set("web", at(3)) // what goes now goes at once
	has(t, h, "web", "10.0.0.3")
}

// TestStartedAnew: a server that was started anew takes nothing away until those whom it lacks have
// had time to register.
func TestStartedAnew(t *testing.T) {
	t.Parallel()
	w := newTwin(t)
	w.set("web", at(1), at(2), at(3))
	w.set("other", at(9))
	h := begin(t, map[string]any{"keep": "10s"}, w)
	has(t, h, "web", "10.0.0.1", "10.0.0.2", "10.0.0.3")
	w.restart(nil)
	w.keeps(t, h, serviceList, 4, "web", "10.0.0.1", "10.0.0.2", "10.0.0.3")
	w.set("web", at(1))
	w.set("web", at(1), at(2))
	w.keeps(t, h, serviceList, 4, "web", "10.0.0.1", "10.0.0.2", "10.0.0.3")
	faulty(t, h, "nacos:other.nacos:missing", "nacos:web.nacos:missing")
	has(t, h, "web", "10.0.0.1", "10.0.0.2") // the third has had its time
	has(t, h, "other")
	faulty(t, h)
	w.set("other", at(8)) // and came back after all
	has(t, h, "other", "10.0.0.8")
}

// TestRefusedAnew: a server that was started anew may refuse at first whom it takes later, and know
// nothing then.
func TestRefusedAnew(t *testing.T) {
	t.Parallel()
	w := newTwin(t)
	w.set("web", at(1), at(2))
	w.set("other", at(9))
	h := begin(t, map[string]any{"keep": "10s"}, w)
	has(t, h, "web", "10.0.0.1", "10.0.0.2")
	w.change(func() { w.refuses["DEFAULT_GROUP/web"] = true })
	w.restart(map[string][]record{"other": {at(9)}})
	faulty(t, h, "nacos:web.nacos:refused")
	w.change(func() { clear(w.refuses) })
	faulty(t, h, "nacos:web.nacos:missing")
	has(t, h, "web", "10.0.0.1", "10.0.0.2")
	w.set("web", at(1))
	has(t, h, "web", "10.0.0.1")
}

// TestEmpty: a server that has nothing is believed after a while.
func TestEmpty(t *testing.T) {
	w := newTwin(t)
	began := time.Now()
	begin(t, map[string]any{"keep": "1s"}, w)
	if took := time.Since(began); took < time.Second {
		t.Errorf("it was believed after %v", took)
	}
	full := newTwin(t)
	late := plugintest.Start(t, Plugin(), configOf(map[string]any{"keep": "1h"}, full))
	full.until(t, "it is listed", func() bool { return len(full.asked) > 5 })
	if late.Synced() {
		t.Error("nothing is a first list")
	}
	full.set("web", at(1))
	late.WaitSynced()
	has(t, late, "web", "10.0.0.1")
}

// TestServers: where one fails, the next is asked, and where one sends its clients away, too.
func TestServers(t *testing.T) {
	t.Parallel()
	one, two := newTwin(t), newTwin(t)
	for _, w := range []*twin{one, two} {
		w.set("web", at(1))
	}
	one.set("web", at(1), at(2))
	h := begin(t, map[string]any{"keep": "10s"}, one, two)
	has(t, h, "web", "10.0.0.1", "10.0.0.2")
	one.server.Stop()
	two.keeps(t, h, serviceList, 3, "web", "10.0.0.1", "10.0.0.2")
	two.set("web", at(1), at(3))
	has(t, h, "web", "10.0.0.1", "10.0.0.3")
	one.serve(t, one.address)
	one.set("web", at(3))
	two.change(func() {
		for _, c := range two.known {
			_ = c.send(encode(connectReset, map[string]any{"requestId": "1", "serverIp": "10.9.9.9", "serverPort": "1"}))
		}
	})
	one.until(t, "it is asked", func() bool { return len(one.known) == 1 })
	has(t, h, "web", "10.0.0.3")
}

// TestNothingIsEmptied: no answer that isn't certain takes anything away.
func TestNothingIsEmptied(t *testing.T) {
	text := func(kind, body string) func(*payload, map[string]any) (*payload, error) {
		return func(p *payload, _ map[string]any) (*payload, error) {
			if p.kind != kind {
				return nil, nil
			}
			return &payload{kind: strings.TrimSuffix(kind, "Request") + "Response", body: []byte(body)}, nil
		}
	}
	for name, c := range map[string]struct {
		asked   string
		instead func(*payload, map[string]any) (*payload, error)
	}{
		"an error":        {serverCheck, func(*payload, map[string]any) (*payload, error) { return nil, status.Error(codes.Internal, "oops") }},
		"no handler":      {serverCheck, func(*payload, map[string]any) (*payload, error) { return fails(302, "RequestHandler Not Found"), nil }},
		"null":            {subscribe, text(subscribe, "null")},
		"nothing":         {subscribe, text(subscribe, "")},
		"garbage":         {subscribe, text(subscribe, "<html>")},
		"no code":         {subscribe, text(subscribe, `{"serviceInfo": {"name": "web", "groupName": "DEFAULT_GROUP", "hosts": []}}`)},
		"no service":      {subscribe, text(subscribe, `{"resultCode": 200}`)},
		"cut":             {subscribe, text(subscribe, `{"resultCode": 200, "serviceInfo": {"name": "web", "hosts": [`)},
		"hosts are none":  {subscribe, text(subscribe, `{"resultCode": 200, "serviceInfo": {"name": "web", "hosts": {}}}`)},
		"refused":         {subscribe, text(subscribe, `{"resultCode": 500, "errorCode": 403, "message": "authorization failed!"}`)},
		"list is refused": {serviceList, text(serviceList, `{"resultCode": 500, "errorCode": 403, "message": "authorization failed!"}`)},
		"list is empty":   {serviceList, text(serviceList, `{"resultCode": 200, "count": 0, "serviceNames": []}`)},
		"list is short":   {serviceList, text(serviceList, `{"resultCode": 200, "count": 5, "serviceNames": ["other"]}`)},
		"list is odd":     {serviceList, text(serviceList, `{"resultCode": 200, "count": 0, "serviceNames": {}}`)},
		"large":           {subscribe, text(subscribe, `{"resultCode": 200, "x": "`+strings.Repeat("x", 70<<10))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTwin(t)
			w.set("web", at(1), at(2))
			h := begin(t, map[string]any{"limits": map[string]int{"messageBytes": 64 << 10}, "refresh": "1s", "keep": "500ms"}, w)
			has(t, h, "web", "10.0.0.1", "10.0.0.2")
			w.change(func() { w.instead = c.instead; w.hangUp() })
			w.keeps(t, h, c.asked, 3, "web", "10.0.0.1", "10.0.0.2")
			w.change(func() { w.instead = nil; w.services[named("web")] = []record{at(1), at(2), at(3)} })
			has(t, h, "web", "10.0.0.1", "10.0.0.2", "10.0.0.3")
		})
	}
}

// TestTold: what the server tells that can't be read takes nothing away.
func TestTold(t *testing.T) {
	w := newTwin(t)
	w.set("web", at(1), at(2))
	h := begin(t, nil, w)
	has(t, h, "web", "10.0.0.1", "10.0.0.2")
	for _, body := range []string{
		"", "null", "[]", `{"serviceInfo": 5}`,
		`{"serviceInfo": {"name": "web", "groupName": "DEFAULT_GROUP", "hosts": 7}}`,
		`{"serviceInfo": {"name": "unknown", "hosts": []}}`,
	} {
		w.until(t, "it is connected", func() bool { return len(w.known) == 1 })
		w.change(func() {
			for _, c := range w.known {
				_ = c.send(&payload{kind: notify, body: []byte(body)})
			}
		})
		w.keeps(t, h, serviceList, 2, "web", "10.0.0.1", "10.0.0.2")
	}
	w.until(t, "it is connected", func() bool { return len(w.known) == 1 })
	w.set("web", at(1), at(2), at(3))
	has(t, h, "web", "10.0.0.1", "10.0.0.2", "10.0.0.3")
}

// TestPages: a group has more services than a page.
func TestPages(t *testing.T) {
	w := newTwin(t)
	w.change(func() {
		for n := range 2500 {
			w.services[named(fmt.Sprintf("s%d", n))] = []record{at(n)}
		}
	})
	h := begin(t, map[string]any{"services": map[string]any{"exclude": []string{"s1*"}}, "interval": "1h"}, w)
	h.WaitRows(state.Services, func(rows map[string]*sdk.Row) bool { return len(rows) == 2500-1111 })
	if n := w.count(serviceList); n != 3 {
		t.Errorf("%d pages", n)
	}
}

// TestMostServices: services beyond the limit are counted, and come when there is room.
func TestMostServices(t *testing.T) {
	w := newTwin(t)
	for n := range 5 {
		w.set(fmt.Sprintf("s%d", n), at(n+1))
	}
	h := begin(t, map[string]any{"limits": map[string]int{"services": 3}, "keep": "0s"}, w)
	h.WaitRows(state.Services, func(rows map[string]*sdk.Row) bool { return len(rows) == 3 })
	h.WaitRows("faults", func(rows map[string]*sdk.Row) bool {
		r := rows["nacos:public/default_group:limit"]
		return r != nil && strings.Contains(string(r.Payload), `"left":2`)
	})
	for _, s := range []string{"s0", "s1"} {
		w.set(s)
		w.forget(s)
	}
	has(t, h, "s4", "10.0.0.5")
	faulty(t, h)
}

// TestBroken: an instance that can't be read any more stays what it was; a new one harms nobody,
// and each is counted.
func TestBroken(t *testing.T) {
	w := newTwin(t)
	w.set("web", at(1), at(2), at(3))
	h := begin(t, nil, w)
	has(t, h, "web", "10.0.0.1", "10.0.0.2", "10.0.0.3")
	w.set("web", at(1, meta("gRPC_port", "none")), at(2, with("healthy", "perhaps")), at(3, with("weight", "heavy")),
		at(4, with("metadata", 5)), at(5), at(6, with("ip", "???")))
	has(t, h, "web", "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.5")
	faulty(t, h, "nacos:web.nacos:address", "nacos:web.nacos:port", "nacos:web.nacos:record", "nacos:web.nacos:weight")
	w.set("web", at(5))
	has(t, h, "web", "10.0.0.5")
	faulty(t, h)
}

// TestRefused: a service that may not be read any more stays, and others are followed.
func TestRefused(t *testing.T) {
	w := newTwin(t)
	w.set("web", at(1))
	w.set("other", at(9))
	h := begin(t, map[string]any{"refresh": "1s", "groups": []string{"DEFAULT_GROUP", "SECRET_GROUP"}, "host": "{service}.{group}.nacos"}, w)
	has(t, h, "web.default-group", "10.0.0.1")
	w.change(func() { w.refuses["DEFAULT_GROUP/web"], w.refuses["SECRET_GROUP/"] = true, true })
	faulty(t, h, "nacos:public/secret_group:refused", "nacos:web.default-group.nacos:refused")
	w.set("other", at(9), at(10))
	has(t, h, "other.default-group", "10.0.0.10", "10.0.0.9")
	has(t, h, "web.default-group", "10.0.0.1")
	w.change(func() { clear(w.refuses) })
	faulty(t, h)
}

// TestTooLarge: a service of which more is told than is taken harms no other.
func TestTooLarge(t *testing.T) {
	w := newTwin(t)
	w.set("web", at(1))
	w.set("large", at(2))
	h := begin(t, map[string]any{"limits": map[string]int{"messageBytes": 16 << 10}, "refresh": "1s"}, w)
	has(t, h, "large", "10.0.0.2")
	w.silent = true
	var all []record
	for n := range 200 {
		all = append(all, at(n))
	}
	w.set("large", all...)
	faulty(t, h, "nacos:large.nacos:refused")
	w.change(func() { w.silent = false })
	w.until(t, "nobody wants it any more", func() bool {
		for _, c := range w.known {
			if c.wants[named("large")] {
				return false
			}
		}
		return true
	})
	w.set("web", at(1), at(3))
	has(t, h, "web", "10.0.0.1", "10.0.0.3")
	has(t, h, "large", "10.0.0.2")
	if n := w.count(serverCheck); n != 1 {
		t.Errorf("there were %d connections", n)
	}
	w.set("large", at(2), at(4))
	has(t, h, "large", "10.0.0.2", "10.0.0.4")
	faulty(t, h)
}

// TestNamespaces: each has its own, and services of one name are apart.
func TestNamespaces(t *testing.T) {
	w := newTwin(t)
	two := key{"two", "DEFAULT_GROUP", "web"}
	w.set("web", at(1))
	w.setAt(two, at(2))
	w.setAt(key{"two", "GROUP_B", "web"}, at(3))
	h := begin(t,
		map[string]any{"namespaces": []string{"public", "two"}, "groups": []string{"DEFAULT_GROUP", "GROUP_B"}, "host": "{service}.{group}.{namespace}.nacos"},
		w)
	has(t, h, "web.default-group.public", "10.0.0.1")
	has(t, h, "web.default-group.two", "10.0.0.2")
	has(t, h, "web.group-b.two", "10.0.0.3")
	w.setAt(two, at(2), at(4))
	has(t, h, "web.default-group.two", "10.0.0.2", "10.0.0.4")
	w.set("web", at(5))
	has(t, h, "web.default-group.public", "10.0.0.5")
	has(t, h, "web.default-group.two", "10.0.0.2", "10.0.0.4")
}

// TestPassword is read anew for each login, said to nobody, and a token that counts no more is
// renewed.
func TestPassword(t *testing.T) {
	w := newTwin(t)
	w.password = "first-secret"
	w.set("web", at(1))
	file := filepath.Join(t.TempDir(), "password")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("wrong-secret")
	address, offset := w.ports(t)
	h := plugintest.Start(t, Plugin(), configOf(map[string]any{"servers": []string{address}, "grpcOffset": offset, "username": "mesh", "passwordFile": file}))
	h.WaitLog(func(_ sdk.Level, _ string, fields map[string]string) bool {
		if strings.Contains(fields["error"], "-secret") {
			t.Error("the password is in the log")
		}
		return strings.Contains(fields["error"], "status 403: it doesn't take username and password")
	})
	if h.Synced() {
		t.Error("there is a list")
	}
	write("first-secret")
	h.WaitSynced()
	has(t, h, "web", "10.0.0.1")
	w.set("web", at(1), at(2))
	has(t, h, "web", "10.0.0.1", "10.0.0.2")
	if w.logins != 1 {
		t.Errorf("%d logins", w.logins)
	}
}

// TestTokens: one that the server takes no more is given up if it is old, and nobody asks for
// another one all the time who may see nothing.
func TestTokens(t *testing.T) {
	w := newTwin(t)
	w.password = "secret"
	address, offset := w.ports(t)
	c := configured(t, fmt.Sprintf(`{"servers": [%q], "grpcOffset": %d, "username": "mesh", "password": "secret"}`, address, offset))
	l, err := newLogin(c)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	token := func() string {
		t.Helper()
		got, err := l.token(t.Context(), c.servers[0])
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := token()
	if token() != first || l.forget(first) {
		t.Error("a fresh token is given up")
	}
	l.at = l.at.Add(-2 * least)
	if !l.forget(first) || token() == first {
		t.Error("an old token that the server takes no more stays")
	}
	if !l.forget(first) { // another question found out before
		t.Error("it isn't tried with the new one")
	}
	l.until = time.Now()
	if third := token(); third != "token-3" {
		t.Errorf("the third token is %s", third)
	}
}
