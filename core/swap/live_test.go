package swap

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/control"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/core/revision"
	"github.com/coxswain-mesh/coxswain/sdk"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// TestMain makes the test's binary one that has built-in plugins.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "plugin" {
		reads, publishes := []string(nil), "services"
		if os.Args[2] == "registry/shops" {
			reads, publishes = []string{"services"}, "shops" // what nobody reads is no loss
		}
		sdk.Serve(sdk.RegistryPlugin{
			Name: os.Args[2], Version: "v1", Reads: reads, Publishes: []string{publishes},
			New: sdk.WithRawConfig(nil, func(config []byte) (sdk.Registry, error) {
				switch os.Args[2] {
				case "registry/shops":
					return newShops(config)
				case "registry/shop":
					return newShop(config)
				}
				return sdk.RegistryFunc(publish), nil
			}),
		})
		return
	}
	os.Exit(m.Run())
}

// publish says one service and waits.
func publish(ctx context.Context, out sdk.Publisher) error {
	if err := sdk.NewList(out).Set([]*sdk.Service{{Host: "a.example", Namespace: "default"}}, nil); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// live is a swapper over real processes, with one registry.
func live(t *testing.T, free func() (uint64, bool)) *Swapper {
	t.Helper()
	return liveOf(t, "plugins: [{name: a, kind: registry, builtin: registry/a}]", free)
}

func liveOf(t *testing.T, set string, free func() (uint64, bool)) *Swapper {
	t.Helper()
	dir, err := os.MkdirTemp("", "cox") // paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parse := func(text []byte) (*manifest.Set, error) {
		return manifest.Parse(filepath.Join(dir, "plugins.yaml"), text)
	}
	text := []byte(set)
	parsed, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	var h *host.Host
	c, err := control.New(control.Config{
		OnServing: func(plugin string) { h.SetState(plugin, host.Serving) },
		Gather:    len(parsed.Tables()) > 0, Plugins: control.ExpectAll(parsed),
		Rules:  control.Rules{Choose: func(_ string, _ *corev3.Node, _ bool, offering []string) string { return offering[0] }},
		Timing: revision.Timing{DebounceAfter: time.Millisecond, DebounceMax: time.Second, EndpointPatience: time.Second, HoldMax: 10 * time.Second},
		Log:    log, Metrics: control.NoMetrics{},
	})
	if err != nil {
		t.Fatal(err)
	}
	h, err = host.New(host.Config{Set: parsed, Exe: exe, RuntimeDir: filepath.Join(dir, "run"), Environ: os.Environ(), Epoch: c.Epoch(), Sessions: c, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Control: c, Host: h, Set: parsed, Text: text, Parse: parse, Log: log, Free: free})
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range []func(context.Context) error{c.Run, h.Run, s.Run} {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- run(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	select {
	case <-c.Started():
	case <-time.After(time.Minute):
		t.Fatal("the first revision is not served")
	}
	return s
}

// pid is that of the process that is the plugin now.
func (s *Swapper) pid() int { return s.cfg.Host.Status()[0].PID }

// settles waits until a plugin's last change is over.
func settles(t *testing.T, s *Swapper, want State) *Change {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		c := s.history.last("a").now()
		if c.State == want {
			return c
		}
		if time.Now().After(end) {
			t.Fatalf("the change is %s: %v", c.State, c.Reasons)
		}
	}
}

// TestRollbackOfACrash: what ends in its window makes room for the old one, which was kept, without
// a start.
func TestRollbackOfACrash(t *testing.T) {
	s := live(t, nil)
	old := s.pid()
	if c, err := s.Restart(t.Context(), "a", Options{}); err != nil || c.State != Switched {
		t.Fatalf("%+v, %v", c, err)
	}
	if s.pid() == old {
		t.Fatal("the old process is still the plugin")
	}
	if err := syscall.Kill(s.pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c := settles(t, s, RolledBack)
	if !strings.Contains(strings.Join(c.Reasons, " "), "it failed") {
		t.Errorf("rolled back since %v", c.Reasons)
	}
	if got := s.pid(); got != old {
		t.Errorf("process %d is the plugin, not the old one, %d", got, old)
	}
}

// TestNoRoomForTwo: where both instances would need more memory than is free, the new one isn't
// started, unless it is forced or nobody knows.
func TestNoRoomForTwo(t *testing.T) {
	free, known := uint64(1<<20), true
	s := live(t, func() (uint64, bool) { return free, known })
	old := s.pid()
	c, err := s.Restart(t.Context(), "a", Options{})
	if err == nil || c.State != Refused || !strings.Contains(strings.Join(c.Reasons, " "), "memory for both") {
		t.Errorf("%+v, %v", c, err)
	}
	if got := s.pid(); got != old {
		t.Errorf("process %d is the plugin, not the old one, %d", got, old)
	}
	for name, o := range map[string]struct {
		free    uint64
		known   bool
		options Options
	}{"forced": {1 << 20, true, Options{Force: true}}, "unknown": {0, false, Options{}}, "room": {1 << 40, true, Options{}}} {
		free, known = o.free, o.known
		if c, err := s.Restart(t.Context(), "a", o.options); err != nil || c.State != Switched {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}
