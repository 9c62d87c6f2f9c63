package etcd_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/coxswain-mesh/coxswain/test/etcd"
	"github.com/coxswain-mesh/coxswain/test/kit/authority"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
)

// TestLeases: an instance goes when its lease ends, and not before.
func TestLeases(t *testing.T) {
	t.Parallel()
	s := etcd.Start(t)
	instance(t, s, "stays", "0", "10.0.0.1", 80)
	instance(t, s, "stays-too", "0", "10.0.0.2", 80)
	const ttl = 6 * time.Second
	lease, err := s.Client.Grant(t.Context(), int64(ttl/time.Second))
	if err != nil {
		t.Fatal(err)
	}
	alive, stop := context.WithCancel(t.Context())
	defer stop()
	renewals, err := s.Client.KeepAlive(alive, lease.ID)
	if err != nil {
		t.Fatal(err)
	}
	s.Put(t, instances+"leased/0", `{"host": "leased.example", "namespace": "shop", "address": "10.0.0.3", "port": 80}`, clientv3.WithLease(lease.ID))
	p := plane(t, set(t, registryOf(fmt.Sprintf(`endpoints: ["http://%s"]`, s.Address))))
	for begun := time.Now(); time.Since(begun) < ttl+ttl/2; {
		if r, ok := <-renewals; !ok || r.TTL <= 0 {
			t.Fatalf("the lease is not renewed: %v", r)
		}
	}
	hasCluster(t, p, "outbound|80||leased.example", true)
	stop()
	hasCluster(t, p, "outbound|80||leased.example", false)
	hasCluster(t, p, "outbound|80||stays.example", true)
}

// registryOf is an entry with a config.
func registryOf(config string) string {
	return "  - {name: instances, kind: registry, builtin: registry/etcd, limits: {sync: 15s}, config: {" + config + "}}\n"
}

// TestTLS: an etcd that takes clients with certificates alone; who has none, and who trusts another
// authority, is told why nothing comes.
func TestTLS(t *testing.T) {
	t.Parallel()
	a, other := authority.New(t), authority.New(t)
	mine, strange := t.TempDir(), t.TempDir()
	a.IssueLocal(t, mine)
	other.IssueLocal(t, strange)
	in := func(dir, name string) string { return filepath.Join(dir, name) }
	pair, err := tls.LoadX509KeyPair(in(mine, "cert-chain.pem"), in(mine, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.ReadFile(in(mine, "root-cert.pem"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(root)
	s := etcd.StartTLS(t, in(mine, "root-cert.pem"), in(mine, "cert-chain.pem"), in(mine, "key.pem"),
		&tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}})
	instance(t, s, "web", "0", "10.0.0.1", 80)
	config := func(dir string, keys bool) string {
		text := fmt.Sprintf(`endpoints: ["https://%s"], tls: {ca: %q`, s.Address, in(dir, "root-cert.pem"))
		if keys {
			text += fmt.Sprintf(`, cert: %q, key: %q`, in(dir, "cert-chain.pem"), in(dir, "key.pem"))
		}
		return text + "}"
	}
	p := plane(t, set(t, registryOf(config(mine, true))))
	hasCluster(t, p, "outbound|80||web.example", true)
	for _, c := range []struct{ config, says string }{
		{config(mine, false), "certificate required"},
		{config(strange, true), "certificate signed by unknown authority"},
	} {
		refused := mesh.Start(t, program, t.TempDir(), "--plugins", set(t, registryOf(c.config)))
		logged(t, refused, c.says)
		if _, err := refused.Get("/ready"); err == nil {
			t.Error("it is ready without a list")
		}
		refused.Kill()
	}
	instance(t, s, "more", "0", "10.0.0.2", 80)
	hasCluster(t, p, "outbound|80||more.example", true)
}

// TestRights: a user who may not read the prefix gets nothing, and the log says why; once it may,
// all comes. One who may not any more loses nothing.
func TestRights(t *testing.T) {
	t.Parallel()
	s := etcd.Start(t)
	s.Users(t, "mesh", "secret", "/elsewhere/")
	instance(t, s, "web", "0", "10.0.0.1", 80)
	instance(t, s, "api", "0", "10.0.0.2", 80)
	p := mesh.Start(t, program, t.TempDir(), "--plugins",
		set(t, strings.Replace(registryOf(fmt.Sprintf(`endpoints: ["http://%s"], username: mesh, password: secret`, s.Address)), "15s", "5m", 1)))
	logged(t, p, "permission denied")
	grant := func() {
		t.Helper()
		if _, err := s.Client.RoleGrantPermission(t.Context(), "mesh", instances,
			clientv3.GetPrefixRangeEnd(instances), clientv3.PermissionType(clientv3.PermRead)); err != nil {
			t.Fatal(err)
		}
	}
	grant()
	p.Ready(t)
	hasCluster(t, p, "outbound|80||web.example", true)
	if _, err := s.Client.RoleRevokePermission(t.Context(), "mesh", instances, clientv3.GetPrefixRangeEnd(instances)); err != nil {
		t.Fatal(err)
	}
	s.Down() // its watches end
	s.Up(t)
	instance(t, s, "late", "0", "10.0.0.3", 80)
	hasCluster(t, p, "outbound|80||web.example", true)
	grant()
	hasCluster(t, p, "outbound|80||late.example", true)
	if strings.Contains(p.Log(), "secret") {
		t.Error("the password is in the log")
	}
}

// TestLimits: of more keys than may be the first count, how many are left out is shown, and they
// come when there is room.
func TestLimits(t *testing.T) {
	t.Parallel()
	s := etcd.Start(t)
	for i, name := range []string{"a", "b", "c"} {
		instance(t, s, name, "0", fmt.Sprintf("10.0.0.%d", i+1), 80)
	}
	p := plane(t, set(t, registryOf(fmt.Sprintf(`endpoints: ["http://%s"], limits: {records: 3}`, s.Address))))
	hasCluster(t, p, "outbound|80||c.example", true)
	instance(t, s, "d", "0", "10.0.0.4", 80)
	shows(t, p, "1 keys are left out", "limits.records, 3")
	out, err := exec.Command(program, "plugins", "show", "instances", "--addr", p.HTTP).CombinedOutput()
	for _, want := range []string{
		"rows of services: 3 served, 0 hidden\n",
		"dropped, 1 (limits.records): such as etcd:/coxswain/instances/: 1 keys are left out",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("plugins show (%v) lacks %q:\n%s", err, want, out)
		}
	}
	hasCluster(t, p, "outbound|80||d.example", false)
	s.Delete(t, instances+"a/0")
	hasCluster(t, p, "outbound|80||d.example", true)
	hasCluster(t, p, "outbound|80||a.example", false)
	out, err = exec.Command(program, "config", "--addr", p.HTTP).CombinedOutput()
	if strings.Contains(string(out), "left out") {
		t.Errorf("%v: %s", err, out)
	}
}
