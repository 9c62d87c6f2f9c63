package host

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"go.uber.org/goleak"
)

func TestSizeString(t *testing.T) {
	for _, text := range []string{"1Gi", "64Mi", "3Ki", "1000"} {
		var s manifest.Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s.String() != text {
			t.Errorf("%s becomes %s, %v", text, s, err)
		}
	}
}

// A plugin that uses more memory than its entry, or else the core, allows is ended, with the limit
// in the reason, and started again; others never notice.
func TestLimitsMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		need.Impossible(t, "memory is read from Linux's /proc")
	}
	t.Run("entry", func(t *testing.T) { testLimitsMemory(t, "limits: {memory: 64Mi}", 0) })
	t.Run("default", func(t *testing.T) { testLimitsMemory(t, "", 64<<20) })
}

func testLimitsMemory(t *testing.T, limits string, most manifest.Size) {
	defer wait.Ended(t, goleak.IgnoreCurrent())
	h, ended, stop := real(t, short(t), `
plugins:
  - {name: good, kind: registry, builtin: registry/idle, limits: {memory: 1Gi}}
  - {name: hungry, kind: registry, builtin: registry/hungry, optional: true, `+limits+`}
`, func(cfg *Config) { cfg.Memory = most })
	if err := h.WaitStarted(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "hungry was ended", func() bool {
		st := h.Status()[1]
		return st.Restarts > 0 && strings.Contains(st.LastError, "(limits.memory, 64Mi)")
	})
	if good := h.Status()[0]; good.Restarts != 0 || good.LastError != "" {
		t.Errorf("the other one: %+v", good)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A Go program is told its limit of memory, but for one whose environment says it.
func TestGoMemory(t *testing.T) {
	for _, c := range []struct {
		entry, want string
		most        manifest.Size
		environ     string
	}{
		{entry: "builtin: registry/idle", want: "GOGC=50 GOMEMLIMIT=7", environ: "GOMEMLIMIT=7"},
		{entry: "builtin: registry/idle", want: "GOGC=50 GOMEMLIMIT=7", most: 1000, environ: "GOMEMLIMIT=7"},
		{entry: "builtin: registry/idle", want: "GOGC=50 GOMEMLIMIT=900", most: 1000},
		{entry: "builtin: registry/idle, limits: {memory: 100}", want: "GOGC=50 GOMEMLIMIT=90", most: 1000},
		{entry: "insecure: true, process: {command: /bin/sh}", want: "GOMEMLIMIT=900", most: 1000},
		{entry: "builtin: registry/idle, limits: {memory: 1000}", want: "GOGC=50 GOMEMLIMIT=900", environ: "GOMEMLIMIT=7"},
		{entry: "insecure: true, process: {command: /bin/sh}, limits: {memory: 1000}", want: "GOMEMLIMIT=900", environ: "GOMEMLIMIT=7"},
		{entry: "insecure: true, process: {command: /bin/sh, env: {GOMEMLIMIT: \"5\"}}, limits: {memory: 1000}", want: "GOMEMLIMIT=5", environ: "GOMEMLIMIT=7"},
		{entry: "insecure: true, process: {command: /bin/sh}", want: "", environ: "GOMEMLIMIT=7"},
	} {
		set, err := manifest.Parse("plugins.yaml", []byte("plugins: [{name: a, kind: registry, "+c.entry+"}]"))
		if err != nil {
			t.Fatal(err)
		}
		ln := &launcher{set: set, exe: os.Args[0], memory: c.most, variables: []string{c.environ, "GOGC=50"}}
		l, release, err := ln.launch(set.Plugins[0])
		if err != nil {
			t.Fatal(err)
		}
		release()
		if got := strings.Join(l.Env, " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.entry, got, c.want)
		}
	}
}

// hungry takes memory until it is ended.
func hungry() error {
	var all [][]byte
	for {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		if all = append(all, b); len(all) > 1<<10 {
			return fmt.Errorf("nobody minds %d MiB", len(all))
		}
		time.Sleep(2 * time.Millisecond) // or a busy machine is out of memory before anybody looks
	}
}
