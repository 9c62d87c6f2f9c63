package wasm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// built are the modules that tests share, by package.
type built struct {
	dir string
	mu  sync.Mutex
	of  map[string][]byte
}

var modules built

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "wasm-test-")
	if err != nil {
		panic(err)
	}
	modules = built{dir: dir, of: map[string][]byte{}}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// build builds a package of this module for wasip1.
func build(t testing.TB, pkg string) []byte {
	t.Helper()
	modules.mu.Lock()
	defer modules.mu.Unlock()
	if code := modules.of[pkg]; code != nil {
		return code
	}
	file := filepath.Join(modules.dir, fmt.Sprintf("%d.wasm", len(modules.of)))
	c := exec.Command("go", "build", "-ldflags=-s -w", "-o", file, pkg)
	c.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	code, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	modules.of[pkg] = code
	return code
}

// core is the core's side of a runner that runs in this process.
type core struct {
	*session.Core
	t      testing.TB
	stderr *syncBuffer
	ended  chan error
}

// run starts a runner.
func run(t testing.TB, code []byte, hello *pb.Hello, change ...func(*Config)) *core {
	t.Helper()
	cfg := Config{Code: code, File: "test.wasm", Memory: 64 << 20, Instances: 1, Cache: filepath.Join(modules.dir, "cache"), Stderr: &syncBuffer{}}
	for _, f := range change {
		f(&cfg)
	}
	ours, theirs := session.Pipe()
	c := &core{Core: session.NewCore(ours), t: t, stderr: cfg.Stderr.(*syncBuffer), ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { c.ended <- Run(ctx, cfg, theirs) }()
	t.Cleanup(func() { cancel(); _ = c.Close() })
	if hello.Versions == nil {
		hello.Versions = []uint32{1}
	}
	if hello.Limits == nil {
		hello.Limits = &pb.Limits{CallMs: 5000, ProgressMs: 10000}
	}
	c.send(&pb.FromCore{Hello: hello})
	return c
}

const patience = 60 * time.Second

func (c *core) send(m *pb.FromCore) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.Send(ctx, m); err != nil {
		c.t.Fatalf("sending: %v", err)
	}
}

// next returns the next message that isn't a log line.
func (c *core) next() *pb.FromPlugin {
	c.t.Helper()
	m, err := c.try()
	if err != nil {
		c.t.Fatalf("receiving: %v; stderr: %s", err, c.stderr)
	}
	return m
}

func (c *core) try() (*pb.FromPlugin, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		m, cost, err := c.Recv(ctx)
		if err != nil {
			return nil, err
		}
		c.Release(cost)
		if m.Log == nil {
			return m, nil
		}
		c.t.Logf("log: %s", m.Log.Text)
		fmt.Fprintln(c.stderr, m.Log.Text)
	}
}

// result waits for the runner's end.
func (c *core) result() error {
	c.t.Helper()
	for {
		if _, err := c.try(); err != nil {
			break
		}
	}
	select {
	case err := <-c.ended:
		return err
	case <-time.After(patience):
		c.t.Fatal("the runner does not end")
		return nil
	}
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.b.Len() < 1<<20 {
		s.b.Write(p)
	}
	return len(p), nil
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestHello(t *testing.T) {
	c := run(t, build(t, "github.com/coxswain-mesh/coxswain/examples/registry-hello"), &pb.Hello{Instance: "hello"})
	ready := c.next().Ready
	if ready == nil || ready.Plugin != "hello" || ready.Kind != pb.KindRegistry {
		t.Fatalf("got %+v", ready)
	}
	services, endpoints := c.next().Rows, c.next().Rows
	if services == nil || services.Tables[0].Table != "services" || endpoints == nil || endpoints.Tables[0].Table != "endpoints" {
		t.Fatalf("got %+v and %+v", services, endpoints)
	}
	if c.next().Synced == nil {
		t.Fatal("no Synced")
	}
	c.send(&pb.FromCore{Drain: &pb.Drain{}})
	if err := c.result(); err != nil {
		t.Fatal(err)
	}
}
