package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// TestFewDescriptors: with few descriptors, and strangers who take all that they get of each port,
// a plugin that ends is started again all the same.
func TestFewDescriptors(t *testing.T) {
	mesh.RuntimeDir(t)
	b := &bench{t: t, dir: t.TempDir()}
	b.file = filepath.Join(b.dir, "plugins.yaml")
	place(t, b.file, swapSet)
	few := filepath.Join(b.dir, "few")
	if err := os.WriteFile(few, []byte("#!/bin/sh\nulimit -n 128\nexec "+program+" \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.plane = mesh.Start(t, few, "", "--plugins", b.file)
	b.plane.Ready(t)
	pid := b.detail("memory").PID
	for range 100 {
		for _, address := range []string{b.plane.HTTP, b.plane.Monitoring, b.plane.XDS} {
			go stay(t.Context(), address)
		}
	}
	for range 3 {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		was := pid
		wait.For(t, "it is there again, and the command says so", func() error {
			if text, ok := b.plugins("show", "memory"); !ok {
				return fmt.Errorf("%s", text)
			}
			d := b.detail("memory")
			if pid = d.PID; pid == was || d.State != "serving" {
				return fmt.Errorf("%+v", d)
			}
			return nil
		})
	}
	b.must("switched", "restart", "istio")
}

// stay keeps a silent connection, and makes another whenever it is closed.
func stay(ctx context.Context, address string) {
	for ctx.Err() == nil {
		if c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address); err == nil {
			end := context.AfterFunc(ctx, func() { _ = c.Close() })
			_, _ = c.Read(make([]byte, 1))
			end()
			_ = c.Close()
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}
