package nacos

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/sdk/process"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"github.com/coxswain-mesh/coxswain/test/kit/authority"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/registries"
)

// begin starts the plugin as a core does, and plays the core.
func begin(t *testing.T, s *server, more map[string]any) *plugintest.Harness {
	t.Helper()
	c := config(s.Address())
	maps.Copy(c, more)
	target := plugintest.Process(process.Command{Path: registries.Program(), Args: []string{"plugin", "registry/nacos"}})
	target.Patience = 3 // a server that starts on a busy machine is slow to tell
	return plugintest.StartTarget(t, target, c)
}

// endpoints describes a host's, sorted.
func endpoints(rows map[string]*sdk.Row, host string) (all []string) {
	for _, r := range rows {
		e, err := sdk.EndpointOf(r)
		if err != nil || e.Host != host+".nacos" {
			continue
		}
		text := fmt.Sprintf("%s:%d %d", e.Address, e.Port, e.Weight)
		if e.Locality != "" {
			text += " " + e.Locality
		}
		if e.Health != 0 {
			text += " not healthy"
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

func has(t *testing.T, h *plugintest.Harness, host string, want ...string) {
	t.Helper()
	h.WaitRows(state.Endpoints, func(rows map[string]*sdk.Row) bool { return slices.Equal(endpoints(rows, host), want) })
}

func faulty(t *testing.T, h *plugintest.Harness, want ...string) {
	t.Helper()
	h.WaitRows("faults", func(rows map[string]*sdk.Row) bool { return slices.Equal(slices.Sorted(maps.Keys(rows)), want) })
}

// must asks, and waits until that succeeds: what an answer says is done takes the server some time
// to know of.
func (s *server) must(t testing.TB, method, path string, pairs ...string) {
	t.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	wait.For(t, method+" "+path, func() error {
		text, err := s.ask(method, path, form)
		var said struct{ Code int }
		if err == nil && (json.Unmarshal(text, &said) != nil || said.Code != 0) {
			err = fmt.Errorf("%.300s", text)
		}
		return err
	})
}

const (
	webHost = "web.default-group.public"
	admin   = "/v3/admin/ns"
)

// TestOperator: what an operator changes of instances and services, and what Nacos finds out by
// itself: an instance that sends no heartbeats, one that no connection can be made to.
func TestOperator(t *testing.T) {
	need.All(t)
	s := start(t)
	s.Put(t, registries.Web(1), registries.Web(2))
	h := begin(t, s, map[string]any{"locality": map[string]string{"cluster": "zone"}, "region": "eu"})
	h.WaitSynced()
	both := []string{"10.0.0.1:80 1", "10.0.0.2:80 1"}
	has(t, h, webHost, both...)
	s.must(t, http.MethodPut, admin+"/instance", "serviceName", "web", "ip", "10.0.0.1", "port", "80", "weight", "2.5")
	has(t, h, webHost, "10.0.0.1:80 250", "10.0.0.2:80 100")
	s.must(t, http.MethodPut, admin+"/instance", "serviceName", "web", "ip", "10.0.0.1", "port", "80", "enabled", "false")
	has(t, h, webHost, both[1])
	late := begin(t, s, nil) // one that subscribes now is told of what is not enabled, too
	late.WaitSynced()
	has(t, late, webHost, both[1])
	s.must(t, http.MethodPut, admin+"/instance", "serviceName", "web", "ip", "10.0.0.1", "port", "80", "weight", "1", "enabled", "true")
	has(t, h, webHost, both...)

	mortal := registries.Web(3)
	mortal.Metadata = map[string]string{"preserved.heart.beat.interval": "1000", "preserved.heart.beat.timeout": "3000", "preserved.ip.delete.timeout": "25000"}
	s.Put(t, mortal)
	has(t, h, webHost, append(both, "10.0.0.3:80 1")...)
	has(t, h, webHost, append(both, "10.0.0.3:80 1 not healthy")...)
	s.must(t, http.MethodPut, admin+"/service", "serviceName", "web", "protectThreshold", "0.9")
	faulty(t, h, "nacos:web.default-group.public.nacos:protected") // two of three are healthy, too few
	has(t, h, webHost, append(both, "10.0.0.3:80 1")...)
	has(t, h, webHost, both...)
	faulty(t, h)

	closed := fmt.Sprint(wait.Port(t)) // nothing listens there
	s.must(t, http.MethodPost, instancePath, "serviceName", "db", "groupName", "OTHER", "ip", "127.0.0.1", "port",
		closed, "ephemeral", "false", "clusterName", "B", "healthy", "true")
	other := begin(t, s, map[string]any{"groups": []string{"DEFAULT_GROUP", "OTHER"}, "locality": map[string]string{"cluster": "zone"}, "region": "eu"})
	other.WaitSynced()
	has(t, other, "db.other.public", "127.0.0.1:"+closed+" 1 eu/B not healthy")
}

// TestRights: a user who may not read any more sees nothing new, and loses nothing; one who may
// read nothing has no first list.
func TestRights(t *testing.T) {
	need.All(t)
	s := start(t)
	s.Put(t, registries.Web(1))
	const auth = "/v3/auth"
	for _, name := range []string{"reader", "nobody"} {
		s.must(t, http.MethodPost, auth+"/user", "username", name, "password", secret)
		s.must(t, http.MethodPost, auth+"/role", "username", name, "role", "role-"+name)
	}
	permission := []string{"role", "role-reader", "resource", "public:*:naming/*", "action", "r"}
	s.must(t, http.MethodPost, auth+"/permission", permission...)
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := map[string]any{"username": "reader", "passwordFile": file, "refresh": "2s"}
	h := begin(t, s, without(c))
	h.WaitSynced()
	has(t, h, webHost, "10.0.0.1:80 1")
	s.must(t, http.MethodDelete, auth+"/permission", permission...)
	refused := func(_ sdk.Level, _ string, fields map[string]string) bool {
		return strings.Contains(fields["error"], "code 403") &&
			strings.Contains(fields["error"], "may read the namespace's services") &&
			!strings.Contains(fields["error"], secret)
	}
	h.WaitLog(refused)
	has(t, h, webHost, "10.0.0.1:80 1")
	s.must(t, http.MethodPost, auth+"/permission", permission...)
	s.Put(t, registries.Web(2))
	has(t, h, webHost, "10.0.0.1:80 1", "10.0.0.2:80 1")

	c["username"] = "nobody"
	blind := begin(t, s, without(c))
	blind.WaitLog(refused)
	if blind.Synced() {
		t.Error("there is a list")
	}
}

// without has no password besides the file.
func without(c map[string]any) map[string]any {
	c["password"] = ""
	return c
}

// TestNamespaces: several, and several groups, each with a service of the same name.
func TestNamespaces(t *testing.T) {
	need.All(t)
	s := start(t)
	s.must(t, http.MethodPost, "/v3/admin/core/namespace", "namespaceId", "two", "namespaceName", "two")
	put := func(namespace, group, ip string) {
		t.Helper()
		s.must(t, http.MethodPost, instancePath, "namespaceId", namespace, "groupName", group, "serviceName", "web", "ip", ip, "port", "80",
			"metadata", `{"preserved.heart.beat.timeout": "86400000", "preserved.ip.delete.timeout": "86400000"}`)
	}
	put("public", "DEFAULT_GROUP", "10.0.0.1")
	put("two", "DEFAULT_GROUP", "10.0.0.2")
	put("two", "A_GROUP", "10.0.0.3")
	h := begin(t, s, map[string]any{"namespaces": []string{"public", "two"}, "groups": []string{"DEFAULT_GROUP", "A_GROUP"}})
	h.WaitSynced()
	has(t, h, webHost, "10.0.0.1:80 1")
	has(t, h, "web.default-group.two", "10.0.0.2:80 1")
	has(t, h, "web.a-group.two", "10.0.0.3:80 1")
	put("two", "DEFAULT_GROUP", "10.0.0.4")
	put("two", "A_GROUP", "10.0.0.5")
	has(t, h, "web.default-group.two", "10.0.0.2:80 1", "10.0.0.4:80 1")
	has(t, h, "web.a-group.two", "10.0.0.3:80 1", "10.0.0.5:80 1")
	has(t, h, webHost, "10.0.0.1:80 1")
}

// TestClients: instances that Nacos' own client registers by a connection. The server is started
// anew, and knows nothing until the client is connected again: nothing goes meanwhile. They go with
// the client.
func TestClients(t *testing.T) {
	need.All(t)
	s := start(t)
	end := s.enlist(t, "web", "10.0.0.1", "10.0.0.2")
	h := begin(t, s, map[string]any{"keep": "30s"})
	h.WaitSynced()
	both := []string{"10.0.0.1:80 1", "10.0.0.2:80 1"}
	has(t, h, webHost, both...)
	for range 2 {
		stays := watch(t, h, both)
		s.stop()
		s.Start(t)
		wait.For(t, "the client is connected again", func() error { return s.lists(2) })
		s.Put(t, registries.Instance{Service: "mark", ID: "mark", Address: "10.0.0.9", Port: 80, Weight: 1})
		h.WaitRows("faults", func(rows map[string]*sdk.Row) bool { return len(rows) == 0 })
		has(t, h, "mark.default-group.public", "10.0.0.9:80 1")
		stays()
	}
	end()
	has(t, h, webHost)
}

// lists returns an error if the server doesn't have so many instances of web.
func (s *server) lists(want int) error {
	text, err := s.ask(http.MethodGet, instancePath+"/list", url.Values{"serviceName": {"web"}})
	if err == nil && strings.Count(string(text), `"ip"`) != want {
		err = fmt.Errorf("%.300s", text)
	}
	return err
}

// watch fails, once its result is called, if service web had other endpoints than these at any
// time.
func watch(t *testing.T, h *plugintest.Harness, want []string) (end func()) {
	t.Helper()
	return registries.Watch(t, func() []string { return endpoints(h.Rows(state.Endpoints), webHost) }, want)
}

// TestServers: two servers, which know nothing of each other. The one that is asked dies, and the
// other one is; what that lacks stays for a while.
func TestServers(t *testing.T) {
	need.All(t)
	one, two := start(t), start(t)
	one.Put(t, registries.Web(1), registries.Web(2))
	two.Put(t, registries.Web(1))
	h := begin(t, one, map[string]any{"servers": []string{one.Address(), two.Address()}, "keep": "10s"})
	h.WaitSynced()
	has(t, h, webHost, "10.0.0.1:80 1", "10.0.0.2:80 1")
	one.stop()
	two.Put(t, registries.Web(3))
	has(t, h, webHost, "10.0.0.1:80 1", "10.0.0.2:80 1", "10.0.0.3:80 1")
	faulty(t, h, "nacos:web.default-group.public.nacos:missing")
	has(t, h, webHost, "10.0.0.1:80 1", "10.0.0.3:80 1")
	faulty(t, h)
	two.Remove(t, registries.Web(1))
	has(t, h, webHost, "10.0.0.3:80 1")
	two.stop()
	one.Start(t)
	one.Put(t, registries.Web(4))
	has(t, h, webHost, "10.0.0.3:80 1", "10.0.0.4:80 1")
	has(t, h, webHost, "10.0.0.4:80 1")
}

// TestTLS: roots, the client's certificate, and the name of the server's.
func TestTLS(t *testing.T) {
	need.All(t)
	ours, theirs := authority.New(t), authority.New(t)
	server, client, stranger := t.TempDir(), t.TempDir(), t.TempDir()
	ours.IssueLocal(t, server)
	ours.IssueLocal(t, client)
	theirs.IssueLocal(t, stranger)
	file := func(dir, name string) string { return filepath.Join(dir, name) }
	const tls = "nacos.remote.server.rpc.tls."
	s := start(t, tls+"enableTls=true", tls+"mutualAuthEnable=true", tls+"compatibility=false", tls+"trustAll=false",
		tls+"certChainFile=file:"+file(server, "cert-chain.pem"),
		tls+"certPrivateKey=file:"+file(server, "key.pem"), tls+"trustCollectionCertFile=file:"+file(server, "root-cert.pem"))
	s.Put(t, registries.Web(1))
	files := func(roots, cert, name string) map[string]any {
		all := map[string]any{"ca": file(roots, "root-cert.pem"), "serverName": name}
		if cert != "" {
			all["cert"], all["key"] = file(cert, "cert-chain.pem"), file(cert, "key.pem")
		}
		return map[string]any{"tls": all}
	}
	for _, c := range []struct{ roots, cert, name, says string }{
		{stranger, client, "", "unknown authority"},
		{client, client, "elsewhere.example", "elsewhere.example"},
		{client, "", "", "127.0.0.1"},
		{client, stranger, "", "127.0.0.1"},
	} {
		h := begin(t, s, files(c.roots, c.cert, c.name))
		h.WaitLog(func(_ sdk.Level, _ string, fields map[string]string) bool {
			return strings.Contains(fields["error"], c.says)
		})
		if h.Synced() {
			t.Errorf("%+v: there is a list", c)
		}
	}
	h := begin(t, s, files(client, client, ""))
	h.WaitSynced()
	has(t, h, webHost, "10.0.0.1:80 1")
	s.Put(t, registries.Web(2))
	has(t, h, webHost, "10.0.0.1:80 1", "10.0.0.2:80 1")
}
