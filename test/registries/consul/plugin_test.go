package consul

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/sdk/process"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/registries"
)

// begin starts the plugin as a core does, and plays the core.
func begin(t *testing.T, config map[string]any) *plugintest.Harness {
	t.Helper()
	quick := map[string]any{"interval": "10ms", "maxRetry": "500ms"}
	maps.Copy(quick, config)
	return plugintest.StartTarget(t, plugintest.Process(process.Command{Path: registries.Program(), Args: []string{"plugin", "registry/consul"}}), quick)
}

// endpoints describes a service's, sorted.
func endpoints(rows map[string]*sdk.Row, service string) (all []string) {
	for _, r := range rows {
		e, err := sdk.EndpointOf(r)
		if err != nil || e.Host != host(service) {
			continue
		}
		text := fmt.Sprintf("%s:%d %s %d", e.Address, e.Port, e.Locality, e.Weight)
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

func register(t *testing.T, s *server, all ...*api.CatalogRegistration) {
	t.Helper()
	for _, r := range all {
		if _, err := s.client.Catalog().Register(r, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// registration is one of a service on a node, with a check.
func registration(node, id, service string, port int, status string, more ...func(*api.CatalogRegistration)) *api.CatalogRegistration {
	r := &api.CatalogRegistration{
		Node: node, Address: "10.0.0." + node[1:], NodeMeta: map[string]string{"zone": "z" + node[1:]},
		Service: &api.AgentService{ID: id, Service: service, Port: port, Weights: api.AgentWeights{Passing: 10, Warning: 2}},
		Check:   &api.AgentCheck{Node: node, CheckID: "c:" + id, Name: "check", Status: status, ServiceID: id, ServiceName: service},
	}
	for _, m := range more {
		m(r)
	}
	return r
}

// TestRights: what the token's policy lets it see no more stays, whether the policy changes or the
// token goes; a new token counts as soon as its file has it.
func TestRights(t *testing.T) {
	need.All(t)
	s := start(t)
	file := filepath.Join(t.TempDir(), "token")
	put := func(token string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(reader)
	register(t, s, registration("n1", "web-1", "web", 80, "passing"),
		registration("n2", "web-2", "web", 80, "passing"), registration("n1", "other-1", "other", 81, "passing"))
	h := begin(t, map[string]any{"address": "http://" + s.Address(), "tokenFile": file, "wait": "2s"})
	h.WaitSynced()
	both := []string{"10.0.0.1:80 dc1/z1 10", "10.0.0.2:80 dc1/z2 10"}
	has(t, h, "web", both...)
	has(t, h, "other", "10.0.0.1:81 dc1/z1 10")

	policy, _, err := s.client.ACL().PolicyReadByName("reader", nil)
	if err != nil {
		t.Fatal(err)
	}
	limit := func(rules string) {
		t.Helper()
		policy.Rules = rules
		if _, _, err := s.client.ACL().PolicyUpdate(policy, nil); err != nil {
			t.Fatal(err)
		}
	}
	limit(`service_prefix "other" {policy = "read"} node_prefix "" {policy = "read"}`)
	h.WaitRows("faults", func(rows map[string]*sdk.Row) bool { return rows["consul:web:hidden"] != nil })
	has(t, h, "web", both...)
	register(t, s, registration("n2", "other-2", "other", 81, "passing"))
	has(t, h, "other", "10.0.0.1:81 dc1/z1 10", "10.0.0.2:81 dc1/z2 10")
	limit(rules)
	h.WaitRows("faults", func(rows map[string]*sdk.Row) bool { return len(rows) == 0 })
	register(t, s, registration("n3", "web-3", "web", 80, "passing"))
	all := append(both, "10.0.0.3:80 dc1/z3 10")
	has(t, h, "web", all...)

	token, _, err := s.client.ACL().TokenReadSelf(&api.QueryOptions{Token: reader})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.client.ACL().TokenDelete(token.AccessorID, nil); err != nil {
		t.Fatal(err)
	}
	h.WaitLog(func(_ sdk.Level, _ string, fields map[string]string) bool {
		return strings.Contains(fields["error"], "ACL not found") && strings.Contains(fields["error"], "its policy has to say")
	})
	has(t, h, "web", all...)
	put(manager)
	register(t, s, registration("n4", "web-4", "web", 80, "passing"))
	has(t, h, "web", append(all, "10.0.0.4:80 dc1/z4 10")...)

	blind := begin(t, map[string]any{"address": "http://" + s.Address()}) // the anonymous token, which may see nothing
	blind.WaitLog(func(_ sdk.Level, _ string, fields map[string]string) bool {
		return strings.Contains(fields["error"], "may see nothing")
	})
	if blind.Synced() {
		t.Error("without a token there is a first list")
	}
}

// TestSelection: filters, tags and metadata select as Consul understands them; warnings have their
// weight, maintenance drains, and what leaves the selection goes.
func TestSelection(t *testing.T) {
	need.All(t)
	s := startWith(t, nil)
	tagged := func(tags ...string) func(*api.CatalogRegistration) {
		return func(r *api.CatalogRegistration) { r.Service.Tags = tags }
	}
	env := func(value string) func(*api.CatalogRegistration) {
		return func(r *api.CatalogRegistration) { r.Service.Meta = map[string]string{"env": value} }
	}
	far := func(r *api.CatalogRegistration) { r.NodeMeta["rack"] = "far" }
	register(t, s,
		registration("n1", "web-1", "web", 80, "passing", tagged("mesh"), env("prod")),
		registration("n2", "web-2", "web", 80, "warning", tagged("mesh", "x"), env("prod")),
		registration("n3", "web-3", "web", 80, "critical", tagged("mesh"), env("prod")),
		registration("n4", "web-4", "web", 80, "passing", env("prod")),
		registration("n5", "web-5", "web", 80, "passing", tagged("mesh"), env("test")),
		registration("n6", "web-6", "web", 80, "passing", tagged("mesh"), env("prod"), far),
		registration("n1", "plain-1", "plain", 80, "passing", env("prod")),
		registration("n1", "skip-1", "skip-me", 80, "passing", tagged("mesh"), env("prod")),
	)
	h := begin(t, map[string]any{"address": "http://" + s.Address(), "services": map[string]any{
		"exclude": []string{"skip-*"}, "tags": []string{"mesh"}, "filter": `Service.Meta.env == "prod" and Node.Meta.rack != "far"`,
	}})
	h.WaitSynced()
	has(t, h, "web", "10.0.0.1:80 dc1/z1 10", "10.0.0.2:80 dc1/z2 2", "10.0.0.3:80 dc1/z3 10 health 1")
	if rows := h.Rows(state.Services); len(rows) != 1 {
		t.Errorf("%d services", len(rows))
	}
	near := begin(t, map[string]any{
		"address":  "http://" + s.Address(),
		"services": map[string]any{"include": []string{"web"}, "nodeMeta": map[string]string{"rack": "far"}},
	})
	near.WaitSynced()
	has(t, near, "web", "10.0.0.6:80 dc1/z6 10")

	register(t, s, &api.CatalogRegistration{Node: "n1", SkipNodeUpdate: true, Check: &api.AgentCheck{
		Node: "n1", CheckID: "_service_maintenance:web-1", Name: "Service Maintenance Mode", Status: "critical", ServiceID: "web-1", ServiceName: "web",
	}})
	has(t, h, "web", "10.0.0.1:80 dc1/z1 10 health 2", "10.0.0.2:80 dc1/z2 2", "10.0.0.3:80 dc1/z3 10 health 1")
	register(t, s, registration("n2", "web-2", "web", 80, "passing", env("prod"))) // its tag is gone
	has(t, h, "web", "10.0.0.1:80 dc1/z1 10 health 2", "10.0.0.3:80 dc1/z3 10 health 1")
}

// TestAnotherHistory: a server whose disk was lost begins anew, with smaller indexes. What it says
// then counts, once it is certain.
func TestAnotherHistory(t *testing.T) {
	need.All(t)
	s := startWith(t, nil)
	register(t, s, registration("n1", "web-1", "web", 80, "passing"), registration("n1", "old-1", "old", 80, "passing"))
	for i := range 50 { // so that its index is larger than the next one's
		register(t, s, registration("n1", "old-1", "old", 1000+i, "passing"))
	}
	h := begin(t, map[string]any{"address": "http://" + s.Address(), "wait": "1s"})
	h.WaitSynced()
	has(t, h, "web", "10.0.0.1:80 dc1/z1 10")
	has(t, h, "old", "10.0.0.1:1049 dc1/z1 10")
	s.Stop(t)
	if err := os.RemoveAll(filepath.Join(s.dir, "data")); err != nil {
		t.Fatal(err)
	}
	s.Start(t)
	register(t, s, registration("n2", "web-2", "web", 80, "passing"))
	has(t, h, "web", "10.0.0.2:80 dc1/z2 10")
	has(t, h, "old")
	register(t, s, registration("n3", "web-3", "web", 80, "passing"))
	has(t, h, "web", "10.0.0.2:80 dc1/z2 10", "10.0.0.3:80 dc1/z3 10")
}

// TestCluster: three servers, of which the plugin asks one. It is started anew, and answers before
// it knows anything; the leader dies, and there is none for a while; then the others die, too.
// Whatever it says meanwhile, nothing goes; what changes afterwards is followed.
func TestCluster(t *testing.T) {
	need.All(t)
	all := cluster(t)
	leader, err := all[0].client.Operator().RaftGetConfiguration(nil)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all[:], func(a, b *server) int { // the leader comes last
		leads := func(s *server) int {
			self, err := s.client.Agent().Self()
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range leader.Servers {
				if r.Leader && r.Node == self["Config"]["NodeName"] {
					return 1
				}
			}
			return 0
		}
		return leads(a) - leads(b)
	})
	var want []string
	for i := range 5 {
		register(t, all[0], registration(fmt.Sprintf("n%d", i+1), "web", "web", 80, "passing"))
		want = append(want, fmt.Sprintf("10.0.0.%d:80 dc1/z%d 10", i+1, i+1))
	}
	h := begin(t, map[string]any{"address": "http://" + all[0].Address(), "wait": "1s"})
	h.WaitSynced()
	has(t, h, "web", want...)
	stays := watch(t, h, want)
	marks := 0
	followed := func() { // all[0] knows a leader, and the plugin follows all[0]
		t.Helper()
		all[0].leads(t)
		marks++
		register(t, all[0], registration("n1", "mark", "mark", marks, "passing"))
		has(t, h, "mark", fmt.Sprintf("10.0.0.1:%d dc1/z1 10", marks))
	}
	for range 3 {
		all[0].Stop(t)
		all[0].Start(t)
		followed()
	}
	all[2].Stop(t) // the leader
	followed()
	all[1].Stop(t) // now there can be none
	all[0].Stop(t)
	all[0].launch(t)
	select {
	case <-time.After(3 * time.Second): // in which it is asked, and knows nothing for certain
	case <-t.Context().Done():
	}
	all[2].launch(t)
	followed()
	all[1].Start(t)
	followed()
	stays()
	register(t, all[1], registration("n9", "web", "web", 80, "passing"))
	has(t, h, "web", append(want, "10.0.0.9:80 dc1/z9 10")...)
}

// watch fails, once its result is called, if service web had other endpoints than these at any
// time.
func watch(t *testing.T, h *plugintest.Harness, want []string) (end func()) {
	t.Helper()
	return registries.Watch(t, func() []string { return endpoints(h.Rows(state.Endpoints), "web") }, want)
}

// TestTLS: roots, the client's certificate, and the name of the server's.
func TestTLS(t *testing.T) {
	need.All(t)
	dir, port := t.TempDir(), wait.Port(t)
	ours, theirs := newAuthority(t, dir, "ours"), newAuthority(t, dir, "theirs")
	ours.issue(t, "server", "server.dc1.consul")
	ours.issue(t, "client", "coxswain")
	theirs.issue(t, "stranger", "stranger")
	file := func(name string) string { return filepath.Join(dir, name+".pem") }
	s := startWith(t, map[string]any{"https": port, "tls": map[string]any{"https": map[string]any{
		"ca_file": file("ours"), "cert_file": file("server"), "key_file": file("server-key"), "verify_incoming": true,
	}}})
	register(t, s, registration("n1", "web-1", "web", 80, "passing"))
	config := func(ca, cert, name string) map[string]any {
		tls := map[string]any{"caFile": file(ca), "serverName": name}
		if cert != "" {
			tls["certFile"], tls["keyFile"] = file(cert), file(cert+"-key")
		}
		return map[string]any{"address": fmt.Sprintf("https://127.0.0.1:%d", port), "tls": tls, "wait": "1s"}
	}
	for _, c := range []struct{ ca, cert, name, says string }{
		{"theirs", "client", "server.dc1.consul", "unknown authority"},
		{"ours", "client", "elsewhere.consul", "elsewhere.consul"},
		{"ours", "", "server.dc1.consul", "certificate required"},
		{"ours", "stranger", "server.dc1.consul", "unknown certificate authority"},
	} {
		h := begin(t, config(c.ca, c.cert, c.name))
		h.WaitLog(func(_ sdk.Level, _ string, fields map[string]string) bool {
			return strings.Contains(fields["error"], c.says)
		})
		if h.Synced() {
			t.Errorf("%+v: there is a list", c)
		}
	}
	h := begin(t, config("ours", "client", "server.dc1.consul"))
	h.WaitSynced()
	has(t, h, "web", "10.0.0.1:80 dc1/z1 10")
}

// TestFlags: services of Consul by flags alone, as with pilot-discovery when it had the registry.
func TestFlags(t *testing.T) {
	need.All(t)
	s := startWith(t, nil)
	register(t, s, registration("n1", "web-1", "web", 80, "passing"))
	p := mesh.Start(t, registries.Program(), t.TempDir(), "--registries", "Consul", "--consulserverURL", "http://"+s.Address())
	p.Ready(t)
	bootstrap := p.Bootstrap(t, "--name", "client", "--interception", "NONE", "--ip", "127.0.0.9")
	wait.For(t, "a sidecar has the cluster", func() error {
		names := mesh.Names(t, p.Fetch(t, bootstrap, "type.googleapis.com/envoy.config.cluster.v3.Cluster"))
		if !slices.Contains(names, "outbound|80||web.service.consul") {
			return fmt.Errorf("it has %v", names)
		}
		return nil
	})
}

// authority issues certificates of TLS as files of a folder: NAME.pem and NAME-key.pem.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, dir, name string) *authority {
	t.Helper()
	a := &authority{dir: dir}
	a.cert, a.key = a.make(t, name, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

func (a *authority) issue(t *testing.T, file, name string) {
	t.Helper()
	a.make(t, file, &x509.Certificate{
		DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

func (a *authority) make(t *testing.T, file string, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: file}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{file: {Type: "CERTIFICATE", Bytes: der}, file + "-key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(a.dir, name+".pem"), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made, key
}
