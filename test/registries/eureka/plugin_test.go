package eureka

import (
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/sdk/process"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"github.com/coxswain-mesh/coxswain/test/kit/authority"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/registries"
)

// begin starts the plugin as a core does, and plays the core.
func begin(t *testing.T, more map[string]any) *plugintest.Harness {
	t.Helper()
	c := config("")
	maps.Copy(c, more)
	return plugintest.StartTarget(t, plugintest.Process(process.Command{Path: registries.Program(), Args: []string{"plugin", "registry/eureka"}}), c)
}

// endpoints describes a service's, sorted.
func endpoints(rows map[string]*sdk.Row, service string) (all []string) {
	for _, r := range rows {
		e, err := sdk.EndpointOf(r)
		if err != nil || e.Host != service+".eureka" {
			continue
		}
		text := fmt.Sprintf("%s:%d", e.Address, e.Port)
		if e.Health != 0 {
			text += fmt.Sprintf(" health %d", e.Health)
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

func has(t *testing.T, h *plugintest.Harness, service string, want ...string) {
	t.Helper()
	h.WaitRows(state.Endpoints, func(rows map[string]*sdk.Row) bool { return slices.Equal(endpoints(rows, service), want) })
}

// TestRegions: a server that knows another region, whose server it asks itself, tells of both as
// one, and of those that come and go later, too; one that keeps regions apart does so where
// remoteRegions asks for it.
func TestRegions(t *testing.T) {
	need.All(t)
	far := start(t, "--open=true")
	far.Put(t, registries.Web(2))
	knows := []string{
		"--eureka.client.region=east", "--eureka.server.remote-region-registry-fetch-interval=1",
		"--eureka.server.remote-region-urls-with-name.west=http://" + far.address + "/eureka/",
	}
	one := start(t, knows...)
	apart := start(t, append(knows, "--eureka.server.disable-transparent-fallback-to-other-region=true")...)
	ask := func(s *server, more ...string) *plugintest.Harness {
		h := begin(t, map[string]any{"servers": []string{"http://" + s.address + "/eureka"}, "timeout": "20s", "remoteRegions": more})
		h.WaitSynced()
		return h
	}
	one.Put(t, registries.Web(1))
	apart.Put(t, registries.Web(1))
	own, both := ask(apart), []*plugintest.Harness{ask(one), ask(apart, "west")}
	have := func(want ...string) {
		t.Helper()
		for _, h := range both {
			has(t, h, "web", want...)
		}
	}
	has(t, own, "web", "10.0.0.1:80")
	have("10.0.0.1:80", "10.0.0.2:80")
	far.Put(t, registries.Web(3))
	have("10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80")
	far.Remove(t, registries.Web(2))
	have("10.0.0.1:80", "10.0.0.3:80")
	one.Put(t, registries.Web(4))
	apart.Put(t, registries.Web(4))
	have("10.0.0.1:80", "10.0.0.3:80", "10.0.0.4:80")
	has(t, own, "web", "10.0.0.1:80", "10.0.0.4:80")
}

// TestLease: an instance that doesn't renew its lease goes when the server says so; one that an
// operator takes out of service drains, and comes back.
func TestLease(t *testing.T) {
	need.All(t)
	s := start(t, "--eureka.server.eviction-interval-timer-in-ms=500", "--eureka.server.enable-self-preservation=false")
	short := s.record(registries.Web(2))
	short["leaseInfo"] = map[string]any{"renewalIntervalInSecs": 1, "durationInSecs": 6}
	s.Put(t, registries.Web(1))
	s.register(t, short)
	h := begin(t, map[string]any{"servers": []string{"http://" + s.address + "/eureka"}, "timeout": "20s"})
	h.WaitSynced()
	has(t, h, "web", "10.0.0.1:80", "10.0.0.2:80")
	has(t, h, "web", "10.0.0.1:80")
	for _, c := range []struct{ method, path, want string }{
		{http.MethodPut, "/apps/WEB/web-1/status?value=OUT_OF_SERVICE", "10.0.0.1:80 health 2"},
		{http.MethodDelete, "/apps/WEB/web-1/status?value=UP", "10.0.0.1:80"},
		{http.MethodPut, "/apps/WEB/web-1/status?value=DOWN", "10.0.0.1:80 health 1"},
	} {
		if err := s.ask(c.method, c.path, nil); err != nil {
			t.Fatal(err)
		}
		has(t, h, "web", c.want)
	}
}

// TestServers: two servers that tell each other; one dies, the other is asked, and nothing goes but
// what is taken out there.
func TestServers(t *testing.T) {
	need.All(t)
	one, two := configure(t), configure(t)
	for _, pair := range [][2]*server{{one, two}, {two, one}} {
		s, other := pair[0], pair[1]
		s.args = append(s.args, "--eureka.instance.hostname=this",
			fmt.Sprintf("--eureka.client.service-url.defaultZone=http://%s:%s@%s/eureka/", user, secret, other.address))
		s.launch(t)
	}
	one.answers(t)
	two.answers(t)
	one.Put(t, registries.Web(1), registries.Web(2))
	wait.For(t, "the second server has them, too", func() error { return two.ask(http.MethodGet, "/apps/WEB/web-2", nil) })
	h := begin(t, map[string]any{"servers": []string{"http://" + one.address + "/eureka", "http://" + two.address + "/eureka"}})
	h.WaitSynced()
	has(t, h, "web", "10.0.0.1:80", "10.0.0.2:80")
	one.stop()
	two.dirty.Store(time.Now().UnixMilli())
	two.Put(t, registries.Web(3))
	has(t, h, "web", "10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80")
	two.Remove(t, registries.Web(2))
	has(t, h, "web", "10.0.0.1:80", "10.0.0.3:80")
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
	s := configure(t, "--server.ssl.certificate="+file(server, "cert-chain.pem"), "--server.ssl.certificate-private-key="+file(server, "key.pem"),
		"--server.ssl.trust-certificate="+file(server, "root-cert.pem"), "--server.ssl.client-auth=need")
	pair, err := tls.LoadX509KeyPair(file(client, "cert-chain.pem"), file(client, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	s.scheme = "https"
	s.client.Transport = &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true}}
	s.Start(t)
	s.Put(t, registries.Web(1))
	_, port, err := net.SplitHostPort(s.address)
	if err != nil {
		t.Fatal(err)
	}
	config := func(roots, cert, host, name string) map[string]any {
		files := map[string]any{"ca": file(roots, "root-cert.pem"), "serverName": name}
		if cert != "" {
			files["cert"], files["key"] = file(cert, "cert-chain.pem"), file(cert, "key.pem")
		}
		return map[string]any{"servers": []string{"https://" + host + ":" + port + "/eureka"}, "tls": files}
	}
	for _, c := range []struct{ roots, cert, name, says string }{
		{stranger, client, "", "unknown authority"},
		{client, client, "elsewhere.example", "elsewhere.example"},
		{client, "", "", "certificate"},
		{client, stranger, "", "certificate"},
	} {
		h := begin(t, config(c.roots, c.cert, "127.0.0.1", c.name))
		h.WaitLog(func(_ sdk.Level, _ string, fields map[string]string) bool {
			return strings.Contains(fields["error"], c.says)
		})
		if h.Synced() {
			t.Errorf("%+v: there is a list", c)
		}
	}
	h := begin(t, config(client, client, "127.0.0.1", ""))
	h.WaitSynced()
	has(t, h, "web", "10.0.0.1:80")
	ours.IssueLocal(t, client) // renewed
	s.Put(t, registries.Web(2))
	has(t, h, "web", "10.0.0.1:80", "10.0.0.2:80")
}

// TestFlags: services of Eureka by flags alone, as with pilot-discovery when it had the registry.
// The server asks for no password.
func TestFlags(t *testing.T) {
	need.All(t)
	s := start(t, "--open=true")
	s.Put(t, registries.Web(1))
	p := mesh.Start(t, registries.Program(), t.TempDir(), "--registries", "Eureka", "--eurekaserverURL", "http://"+s.Address()+"/eureka")
	p.Ready(t)
	bootstrap := p.Bootstrap(t, "--name", "client", "--interception", "NONE", "--ip", "127.0.0.9")
	wait.For(t, "a sidecar has the cluster", func() error {
		names := mesh.Names(t, p.Fetch(t, bootstrap, "type.googleapis.com/envoy.config.cluster.v3.Cluster"))
		if !slices.Contains(names, "outbound|80||web.eureka") {
			return fmt.Errorf("it has %v", names)
		}
		return nil
	})
}

// TestModule is the trial of the same plugin as a WASM module. An answer for it has less than 1
// MiB, so that it can't have many instances.
func TestModule(t *testing.T) {
	need.All(t)
	module := filepath.Join(t.TempDir(), "registry-eureka.wasm")
	mesh.Build(t, module, "../../../plugins/registry/eureka/wasm", "GOOS=wasip1", "GOARCH=wasm")
	asModule := trial
	asModule.Entry = func(address string) string {
		return fmt.Sprintf("wasm: {path: %q, allow: {http: [%q]}}\ninsecure: true", module, address)
	}
	asModule.Cannot = map[string]string{registries.Many: "an answer for a module has less than 1 MiB, some 900 instances"}
	asModule.Run(t)
}
