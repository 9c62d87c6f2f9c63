package host

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-mesh/coxswain/core/manifest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// The time in which a module is compiled, as its runner says, has a limit of its own; what it does
// then has that of any plugin.
func TestUnready(t *testing.T) {
	for name, c := range map[string]struct {
		entry    *manifest.Entry
		compiles time.Duration
		want     string
		after    time.Duration
	}{
		"a module that is compiled":      {&manifest.Entry{Wasm: &manifest.Wasm{}}, 20 * time.Second, "limits.configure", 28 * time.Second},
		"one that is compiled for ever":  {&manifest.Entry{Wasm: &manifest.Wasm{}}, time.Hour, "limits.compile", 68 * time.Second},
		"one that nearly takes as long":  {&manifest.Entry{Wasm: &manifest.Wasm{}}, 57 * time.Second, "limits.configure", 65 * time.Second},
		"one that is silent":             {&manifest.Entry{Wasm: &manifest.Wasm{}}, 0, "limits.configure", 8 * time.Second},
		"a process that says it goes on": {&manifest.Entry{Process: &manifest.Process{}}, time.Hour, "limits.configure", 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.entry.Limits = manifest.Limits{Configure: 8 * time.Second, Compile: time.Minute}
				a, b := session.Pipe()
				core, plugin := session.NewCore(a), session.NewPlugin(b)
				defer core.Close()
				defer plugin.Close()
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				began := time.Now()
				go unready(ctx, c.entry, core, cancel)
				for time.Since(began) < c.compiles && ctx.Err() == nil {
					_ = plugin.Send(ctx, &pb.FromPlugin{Progress: &pb.Progress{}})
					time.Sleep(500 * time.Millisecond)
				}
				<-ctx.Done()
				took := time.Since(began)
				if err := context.Cause(ctx); !strings.Contains(err.Error(), c.want) || took < c.after-time.Second || took > c.after+time.Second {
					t.Errorf("after %s: %v", took, err)
				}
			})
		})
	}
}
