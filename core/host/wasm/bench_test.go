package wasm

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/host/wasm/spec"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// BenchmarkCall asks a patch about a resource of 1 KB, over both carriers.
func BenchmarkCall(b *testing.B) {
	for name, start := range map[string]starter{"process": native("./testdata/guest"), "wasm": spawn} {
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
			if !cold {
				c := spawn(b, code, &pb.Hello{Instance: "hello"}, func(c *Config) { c.Cache = warm })
				c.next()
				c.process.Stop(0)
			}
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
