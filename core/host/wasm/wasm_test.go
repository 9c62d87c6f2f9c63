package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/host/process"
	"github.com/coxswain-mesh/coxswain/core/host/wasm/spec"
	sdkprocess "github.com/coxswain-mesh/coxswain/sdk/process"
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

// TestMain makes the test's binary one that is a runner, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == spec.Command {
		serve()
	}
	dir, err := os.MkdirTemp("", "wasm-test-")
	if err != nil {
		panic(err)
	}
	modules = built{dir: dir, of: map[string][]byte{}}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// serve is cmd/coxswain's wasm-runner.
func serve() {
	s, err := spec.Parse(os.Args[2:])
	if err != nil {
		panic(err)
	}
	code, err := os.ReadFile(s.Module)
	if err != nil {
		panic(err)
	}
	err = sdkprocess.Serve(func(ctx context.Context, c session.Carrier) error {
		return Run(ctx, Config{
			Code: code, File: s.File, Memory: s.Memory, Instances: s.Instances, Cache: s.Cache, Environ: os.Environ(), Stderr: os.Stderr,
		}, c)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// spawn starts a runner in a process of its own.
func spawn(t testing.TB, code []byte, hello *pb.Hello, change ...func(*Config)) *core {
	t.Helper()
	cfg := Config{Memory: 64 << 20, Instances: 1, Cache: filepath.Join(modules.dir, "cache")}
	for _, f := range change {
		f(&cfg)
	}
	file := filepath.Join(t.TempDir(), "test.wasm")
	if err := os.WriteFile(file, code, 0o600); err != nil {
		t.Fatal(err)
	}
	args := spec.Spec{Module: file, File: "test.wasm", Cache: cfg.Cache, Memory: cfg.Memory, Instances: cfg.Instances}.Args()
	return begin(t, hello, process.Spec{Path: os.Args[0], Env: cfg.Environ, Args: args})
}

// native starts a package of this module as a process: the other carrier.
func native(pkg string) starter {
	return func(t testing.TB, _ []byte, hello *pb.Hello, change ...func(*Config)) *core {
		t.Helper()
		file := filepath.Join(t.TempDir(), "native")
		if out, err := exec.Command("go", "build", "-o", file, pkg).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var cfg Config
		for _, f := range change {
			f(&cfg)
		}
		return begin(t, hello, process.Spec{Path: file, Env: cfg.Environ})
	}
}

// begin starts a process and says Hello to it.
func begin(t testing.TB, hello *pb.Hello, s process.Spec) *core {
	t.Helper()
	sockets, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(sockets) })
	stderr := &syncBuffer{}
	s.Name, s.SocketDir, s.StartTimeout, s.Stderr = "test", sockets, patience, stderr
	p, err := process.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(0) })
	c := &core{Core: session.NewCore(p.Carrier()), t: t, stderr: stderr, ended: make(chan error, 1), process: p}
	go func() {
		<-c.Done()
		c.ended <- c.Err()
	}()
	greet(c, hello)
	return c
}

func greet(c *core, hello *pb.Hello) {
	c.t.Helper()
	if hello.Versions == nil {
		hello.Versions = []uint32{1}
	}
	if hello.Limits == nil {
		hello.Limits = &pb.Limits{CallMs: 5000, ProgressMs: 10000}
	}
	c.send(&pb.FromCore{Hello: hello})
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
	// process is set if the runner has one.
	process *process.Process
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
	greet(c, hello)
	return c
}

// patience is for the compilation of a module, too.
const patience = 5 * time.Minute

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

// The same source publishes the same rows over both carriers.
func TestTwoCarriers(t *testing.T) {
	const pkg = "github.com/coxswain-mesh/coxswain/examples/registry-hello"
	var said [][][]byte
	for _, start := range []starter{native(pkg), spawn, run} {
		c := start(t, build(t, pkg), &pb.Hello{Instance: "hello"})
		var all [][]byte
		for {
			m := c.next()
			all = append(all, m.AppendTo(nil))
			if m.Synced != nil {
				break
			}
		}
		said = append(said, all)
		c.send(&pb.FromCore{Drain: &pb.Drain{}})
		if err := c.result(); err != nil && !errors.Is(err, io.EOF) {
			t.Errorf("it ended with %v", err)
		}
	}
	if len(said[0]) != 4 || !reflect.DeepEqual(said[0], said[1]) || !reflect.DeepEqual(said[0], said[2]) {
		t.Errorf("a process said %q, a module %q and %q", said[0], said[1], said[2])
	}
}

// A module needs no SDK and no pumping: one in C that blocks on its standard input.
func TestC(t *testing.T) {
	code, err := os.ReadFile("testdata/c/guest.wasm")
	if err != nil {
		t.Fatal(err)
	}
	c := spawn(t, code, &pb.Hello{Instance: "c"})
	ready, rows, synced := c.next().Ready, c.next().Rows, c.next().Synced
	if ready == nil || ready.Plugin != "c" || rows == nil || rows.Tables[0].Upserts[0].Key != "k" || synced == nil {
		t.Errorf("got %+v, %+v, %+v", ready, rows, synced)
	}
	t.Logf("a runner with a C guest has %d KB (PSS)", pss(c.process.PID()))
	c.send(&pb.FromCore{Drain: &pb.Drain{}})
	if err := c.result(); !errors.Is(err, io.EOF) {
		t.Errorf("it ended with %v", err)
	}
}
