package wasm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/host/process"
	"github.com/coxswain-mesh/coxswain/core/host/wasm/spec"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// native starts the test's guest as a process.
func native(t testing.TB, _ []byte, hello *pb.Hello, change ...func(*Config)) *core {
	t.Helper()
	file := filepath.Join(modules.dir, "native")
	if _, err := os.Stat(file); err != nil {
		if out, err := exec.Command("go", "build", "-o", file, "./testdata/guest").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	var cfg Config
	for _, f := range change {
		f(&cfg)
	}
	sockets, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(sockets) })
	p, err := process.Start(t.Context(), process.Spec{Name: "test", Path: file, SocketDir: sockets, StartTimeout: patience, Env: cfg.Environ})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(0) })
	c := &core{Core: session.NewCore(p.Carrier()), t: t, stderr: &syncBuffer{}, process: p}
	greet(c, hello)
	return c
}

// BenchmarkCall asks a patch about a resource of 1 KB, over both carriers.
func BenchmarkCall(b *testing.B) {
	for name, start := range map[string]starter{"process": native, "wasm": spawn} {
		b.Run(name, func(b *testing.B) {
			c := mode(start, b, "patch", spec.Grants{})
			if c.next().Ready == nil {
				b.Fatal("no Ready")
			}
			body := make([]byte, 1000)
			ctx := context.Background()
			for id := uint64(1); b.Loop(); id++ {
				err := c.Send(ctx, &pb.FromCore{Patch: &pb.Patch{Id: id, Type: "t", Resources: []*pb.Resource{{Name: "a", Bytes: body}}}})
				if err != nil {
					b.Fatal(err)
				}
				m, cost, err := c.Recv(ctx)
				if err != nil || m.Patched == nil || m.Patched.Error != "" {
					b.Fatalf("%+v, %v", m, err)
				}
				c.Release(cost)
			}
			b.ReportMetric(float64(pss(c.process.PID()))/1024, "PSS-MB")
		})
	}
}

// BenchmarkReady measures from the start of the process to Ready.
func BenchmarkReady(b *testing.B) {
	code := build(b, "github.com/coxswain-mesh/coxswain/examples/registry-hello")
	for _, cold := range []bool{true, false} {
		b.Run(fmt.Sprintf("cold=%v", cold), func(b *testing.B) {
			b.ReportMetric(float64(len(code))/1e6, "module-MB")
			warm := b.TempDir()
			for b.Loop() {
				cache := warm
				if cold {
					cache = b.TempDir()
				}
				c := spawn(b, code, &pb.Hello{Instance: "hello"}, func(c *Config) { c.Cache = cache })
				if c.next().Ready == nil {
					b.Fatal("no Ready")
				}
				b.StopTimer()
				time.Sleep(100 * time.Millisecond)
				b.ReportMetric(float64(pss(c.process.PID()))/1024, "PSS-MB")
				c.process.Stop(0)
				b.StartTimer()
			}
		})
	}
}

var pssPattern = regexp.MustCompile(`(?m)^Pss:\s+([0-9]+) kB$`)

// pss is a process's memory in KB.
func pss(pid int) (kB int) {
	rollup, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if m := pssPattern.FindSubmatch(rollup); m != nil {
		fmt.Sscan(string(m[1]), &kB)
	}
	return kB
}
