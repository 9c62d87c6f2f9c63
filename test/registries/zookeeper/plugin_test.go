package zookeeper

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kit/zookeeper"
	"github.com/coxswain-mesh/coxswain/test/registries"
)

// plane starts a control plane with the plugin alone.
func plane(t *testing.T, config map[string]any) *mesh.Plane {
	t.Helper()
	set := filepath.Join(t.TempDir(), "plugins.yaml")
	entry := fmt.Sprintf("plugins:\n  - {name: files, kind: config, builtin: config/file}\n  - {name: zookeeper, kind: "+
		"registry, builtin: registry/zookeeper, limits: {sync: 20s}, config: %s}\n  - {name: istio, kind: generator, "+
		"builtin: generator/istio}\n", text(t, config))
	if err := os.WriteFile(set, []byte(entry), 0o600); err != nil {
		t.Fatal(err)
	}
	return mesh.Start(t, registries.Program(), t.TempDir(), "--plugins", set)
}

// says waits until the log or `coxswain config` says something.
func says(t *testing.T, p *mesh.Plane, words string) {
	t.Helper()
	wait.For(t, fmt.Sprintf("it is said: %q", words), func() error {
		out, _ := exec.Command(registries.Program(), "config", "--addr", p.HTTP).CombinedOutput()
		if strings.Contains(string(out), words) || strings.Contains(p.Log(), words) {
			return nil
		}
		return fmt.Errorf("it isn't in:\n%s%s", out, p.LastLines(10))
	})
}

// unsaid waits until `coxswain config` doesn't say it any more.
func unsaid(t *testing.T, p *mesh.Plane, words string) {
	t.Helper()
	wait.For(t, fmt.Sprintf("it is said no more: %q", words), func() error {
		out, err := exec.Command(registries.Program(), "config", "--addr", p.HTTP).CombinedOutput()
		if strings.Contains(string(out), words) {
			err = fmt.Errorf("%s", out)
		}
		return err
	})
}

// endpoints are those that the control plane has of an interface.
func endpoints(t *testing.T, p *mesh.Plane, host string) int {
	t.Helper()
	page, err := p.Get("/debug/endpoints")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]map[string]struct{ Shards map[string][]any }
	if err := json.Unmarshal([]byte(page), &all); err != nil {
		t.Fatalf("%v in %s", err, page)
	}
	n := 0
	for _, of := range all[host] {
		for _, shard := range of.Shards {
			n += len(shard)
		}
	}
	return n
}

// TestTLS: a server's secureClientPort, with certificates of both sides; a server that isn't
// trusted is refused.
func TestTLS(t *testing.T) {
	mine, strange := certificates(t), certificates(t)
	in := func(dir, name string) string { return filepath.Join(dir, name) }
	secure := wait.Address(t)
	_, port, err := net.SplitHostPort(secure)
	if err != nil {
		t.Fatal(err)
	}
	s := zookeeper.Start(t, "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
		"secureClientPort="+port, "secureClientPortAddress=127.0.0.1",
		"ssl.keyStore.location="+in(mine, "server.pem"), "ssl.trustStore.location="+in(mine, "ca.pem"),
		"ssl.keyStore.type=PEM", "ssl.trustStore.type=PEM", "ssl.hostnameVerification=false")
	(&server{s, nil}).open(t, "10.0.0.1")
	config := func(roots, cert string) map[string]any {
		return map[string]any{"servers": []string{secure}, "maxRetry": "1s", "username": zookeeper.User, "password": zookeeper.Password, "tls": map[string]any{
			"enabled": true, "caFile": in(roots, "ca.pem"), "certFile": in(cert, "cert.pem"), "keyFile": in(cert, "key.pem"),
		}}
	}
	good := plane(t, config(mine, mine))
	good.Ready(t)
	says(t, good, "hosts=1 nodes=1")
	bad := plane(t, config(strange, mine))
	says(t, bad, "certificate signed by unknown authority")
	stranger := plane(t, config(mine, strange))
	says(t, stranger, "there is no session with ZooKeeper")
	for _, p := range []*mesh.Plane{bad, stranger} {
		if _, err := p.Get("/ready"); err == nil {
			t.Error("it is ready without a list")
		}
		p.Kill()
	}
}

// open registers a provider of com.example.Open.
func (s *server) open(t *testing.T, address string) {
	t.Helper()
	s.Create(t, "/dubbo/com.example.Open/providers/tri%3A%2F%2F"+address+"%3A50051%2Fcom.example.Open%3Finterface%3Dcom.example.Open", nil, false)
}

// TestRights: nodes that may not be read any more stay what they were, and are read again when they
// may be.
func TestRights(t *testing.T) {
	s := &server{zookeeper.Start(t), nil}
	s.open(t, "10.0.0.1")
	p := plane(t, map[string]any{
		"servers": []string{s.Address()}, "maxRetry": "300ms", "username": zookeeper.User,
		"password": zookeeper.Password, "settle": "1s", "refresh": "1s",
	})
	p.Ready(t)
	const host, list = "com.example.open.dubbo", "/dubbo/com.example.Open/providers"
	if n := endpoints(t, p, host); n != 1 {
		t.Fatalf("%d endpoints", n)
	}
	acl := func(acl []zk.ACL) {
		if _, err := s.Client.SetACL(list, acl, -1); err != nil {
			t.Fatal(err)
		}
	}
	acl(append(zk.DigestACL(zk.PermAll, "other", "other"), zk.DigestACL(zk.PermAdmin|zk.PermCreate, zookeeper.User, zookeeper.Password)...))
	s.open(t, "10.0.0.2") // its watch is lost
	says(t, p, "zookeeper:"+list)
	says(t, p, "may not be read; what was read last stays")
	if n := endpoints(t, p, host); n != 1 {
		t.Errorf("%d endpoints", n)
	}
	acl(zookeeper.ACL())
	wait.For(t, "what came meanwhile is there", func() error {
		if n := endpoints(t, p, host); n != 2 {
			return fmt.Errorf("%d endpoints", n)
		}
		return nil
	})
	unsaid(t, p, "may not be read")
}

// TestLostDisk: a ZooKeeper that comes back without its disk takes nothing away. When providers are
// back, those that aren't go, after a while.
func TestLostDisk(t *testing.T) {
	s := &server{zookeeper.Start(t), nil}
	for i := range 4 {
		s.open(t, fmt.Sprintf("10.0.0.%d", i+1))
	}
	p := plane(t, map[string]any{
		"servers": []string{s.Address()}, "maxRetry": "300ms", "session": "4s", "username": zookeeper.User,
		"password": zookeeper.Password, "settle": "3s",
	})
	p.Ready(t)
	const host = "com.example.open.dubbo"
	s.LoseDisk(t)
	says(t, p, "is not there any more; what was read last stays until it is")
	if n := endpoints(t, p, host); n != 4 {
		t.Fatalf("%d endpoints", n)
	}
	for i := range 3 {
		s.open(t, fmt.Sprintf("10.0.0.%d", i+1))
		if n := endpoints(t, p, host); n != 4 {
			t.Errorf("%d endpoints while providers come back", n)
		}
	}
	wait.For(t, "the one that didn't come back is gone", func() error {
		if n := endpoints(t, p, host); n != 3 {
			return fmt.Errorf("%d endpoints", n)
		}
		return nil
	})
	unsaid(t, p, "is not there any more")
}
