// Package etcd runs etcd itself, on loopback, for tests. `make kube` builds it.
package etcd

import (
	"context"
	"crypto/tls"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/coxswain-mesh/coxswain/test/kit/program"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// Server is an etcd of one member.
type Server struct {
	// Address is HOST:PORT of its clients.
	Address string
	// Client is the test's own, root's where there are users.
	Client *clientv3.Client

	path    string
	args    []string
	dir     string
	process *program.Process
}

// Start starts one, in plain text and without users, and waits until it answers. The test's end
// stops it.
func Start(t testing.TB) *Server {
	t.Helper()
	return start(t, "http", nil, nil)
}

// StartTLS starts one that takes clients alone whose certificates the CA in a file has signed.
func StartTLS(t testing.TB, ca, cert, key string, client *tls.Config) *Server {
	t.Helper()
	return start(t, "https", []string{"--cert-file", cert, "--key-file", key, "--client-cert-auth", "--trusted-ca-file", ca}, client)
}

func start(t testing.TB, scheme string, more []string, client *tls.Config) *Server {
	t.Helper()
	s := &Server{Address: wait.Address(t), dir: t.TempDir(), path: filepath.Join(program.Built(t, "test/kube/servers", "kube", "etcd"), "etcd")}
	clients, peers := scheme+"://"+s.Address, "http://"+wait.Address(t)
	s.args = append([]string{
		"--listen-client-urls", clients, "--advertise-client-urls", clients, "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
		"--initial-cluster", "default=" + peers, "--unsafe-no-fsync", "--log-level", "error",
	}, more...)
	s.run(t)
	s.Client = s.connect(t, clientv3.Config{Endpoints: []string{clients}, TLS: client})
	return s
}

func (s *Server) connect(t testing.TB, c clientv3.Config) *clientv3.Client {
	t.Helper()
	c.Logger, c.DialTimeout = zap.NewNop(), 30*time.Second
	client, err := clientv3.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	answers(t, client)
	return client
}

// answers waits until etcd answers a client.
func answers(t testing.TB, client *clientv3.Client) {
	t.Helper()
	wait.For(t, "etcd answers", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_, err := client.Get(ctx, "none")
		return err
	})
}

// PID of its process.
func (s *Server) PID() int { return s.process.PID() }

// Down ends it as a crash does.
func (s *Server) Down() { s.process.Stop() }

// Up starts it again after Down, with what it has on disk, and waits until it answers Client: a
// write is not tried again by the client whose connection ends with it.
func (s *Server) Up(t testing.TB) {
	t.Helper()
	s.run(t)
	answers(t, s.Client)
}

func (s *Server) run(t testing.TB) {
	t.Helper()
	s.process = program.Start(t, exec.Command(s.path, append([]string{"--data-dir", filepath.Join(s.dir, "data")}, s.args...)...))
}

// Empty has Up start it with nothing on disk, as another etcd at the same address.
func (s *Server) Empty(t testing.TB) {
	t.Helper()
	s.Down()
	s.dir = t.TempDir()
	s.Up(t)
}

// Users makes users necessary: root, whom Client is then, and one with a password who may read and
// write keys that begin with a prefix.
func (s *Server) Users(t testing.TB, name, password, prefix string) {
	t.Helper()
	ctx := t.Context()
	c := s.Client
	_, err := c.UserAdd(ctx, "root", "toor")
	if err == nil {
		_, err = c.UserGrantRole(ctx, "root", "root")
	}
	if err == nil {
		_, err = c.RoleAdd(ctx, "mesh")
	}
	if err == nil {
		_, err = c.RoleGrantPermission(ctx, "mesh", prefix, clientv3.GetPrefixRangeEnd(prefix), clientv3.PermissionType(clientv3.PermReadWrite))
	}
	if err == nil {
		_, err = c.UserAdd(ctx, name, password)
	}
	if err == nil {
		_, err = c.UserGrantRole(ctx, name, "mesh")
	}
	if err == nil {
		_, err = c.AuthEnable(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Client = s.connect(t, clientv3.Config{Endpoints: c.Endpoints(), Username: "root", Password: "toor"})
}

// Put writes a key.
func (s *Server) Put(t testing.TB, key, value string, options ...clientv3.OpOption) {
	t.Helper()
	if _, err := s.Client.Put(context.Background(), key, value, options...); err != nil {
		t.Fatal(err)
	}
}

// Delete deletes a key.
func (s *Server) Delete(t testing.TB, key string, options ...clientv3.OpOption) {
	t.Helper()
	if _, err := s.Client.Delete(context.Background(), key, options...); err != nil {
		t.Fatal(err)
	}
}

// Compact has it forget all but the present.
func (s *Server) Compact(t testing.TB) {
	t.Helper()
	r, err := s.Client.Get(context.Background(), "none")
	if err == nil {
		_, err = s.Client.Compact(context.Background(), r.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err != nil {
		t.Fatal(err)
	}
}
