package swap

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/internal/artifact"
	"github.com/coxswain-mesh/coxswain/internal/artifact/liar"
)

// TestArtifact: a plugin of a registry starts, goes to what its tag means by now, and back; a
// registry that is gone, or lies, is an error of the swap alone.
func TestArtifact(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	registry := liar.New(t)
	push := func(text []byte) string {
		layer := registry.Put(artifact.ProgramType, text)
		platform := artifact.Config{OS: runtime.GOOS, Architecture: runtime.GOARCH}
		return registry.Artifact(t, "1", artifact.ConfigType, platform, layer).Digest.String()
	}
	first := push(program)
	s := liveOf(t, fmt.Sprintf(`
plugins:
  - {name: a, kind: registry, plugin: 'oci://%s/a:1', insecure: true, process: {args: [plugin, registry/a]}}
`, registry.Host()), nil)
	runs := func() string { return s.cfg.Host.Status()[0].Entry.ArtifactDigest() }
	if runs() != first {
		t.Fatalf("%s runs, not %s", runs(), first)
	}
	second := push(append(slices.Clone(program), 0)) // another one that does the same
	c, err := s.Swap(t.Context(), "a", Request{}, Options{DryRun: true})
	if err != nil || c.State != Compared || !strings.HasSuffix(c.From, first) || !strings.HasSuffix(c.To, second) {
		t.Errorf("%+v, %v", c, err)
	}
	// Who may run nothing but what the file has the digest of asks no registry.
	asked := len(registry.Asked())
	declared := Options{Declared: true}
	if c, err := s.Swap(t.Context(), "a", Request{}, declared); err == nil || c != nil || !strings.Contains(err.Error(), "coxswain plugins pin FILE a") {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := s.Restart(t.Context(), "a", declared); err != nil || c.State != Switched || runs() != first {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := s.Disable(t.Context(), "a", Options{Force: true, Ephemeral: true}); err != nil {
		t.Fatal(err)
	}
	c, err = s.Enable(t.Context(), "a", Options{Ephemeral: true, Declared: true})
	if err == nil || c != nil || !strings.Contains(err.Error(), "plugins enable a") {
		t.Errorf("%+v, %v", c, err)
	}
	if n := len(registry.Asked()); n != asked {
		t.Errorf("the registry was asked %d times", n-asked)
	}
	if c, err := s.Enable(t.Context(), "a", Options{Ephemeral: true}); err != nil || runs() != first {
		t.Errorf("%+v, %v", c, err)
	}
	pinned := liveOf(t, fmt.Sprintf(`
plugins:
  - {name: a, kind: registry, plugin: 'oci://%s/a:1@%s', insecure: true, process: {args: [plugin, registry/a]}}
`, registry.Host(), first), nil)
	if c, err := pinned.Swap(t.Context(), "a", Request{}, declared); err != nil || c.State != Switched || !strings.HasSuffix(c.To, first) {
		t.Errorf("%+v, %v", c, err)
	}
	old := s.pid()
	third := push(append(slices.Clone(program), 0, 0))
	for name, twist := range map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"gone": func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		},
		"a liar": func(w http.ResponseWriter, r *http.Request) bool {
			lies := strings.Contains(r.URL.Path, "/blobs/")
			if lies {
				fmt.Fprint(w, "#!/bin/sh")
			}
			return lies
		},
	} {
		registry.Twist(twist)
		if c, err := s.Swap(t.Context(), "a", Request{}, Options{}); err == nil || c.State != Failed || len(c.Reasons) == 0 {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
		if s.pid() != old || runs() != first {
			t.Errorf("%s: what ran doesn't any more", name)
		}
		if c, err := s.Restart(t.Context(), "a", Options{}); err != nil || c.State != Switched || runs() != first {
			t.Errorf("%s: a restart needs the registry: %+v, %v", name, c, err)
		}
		old = s.pid()
	}
	registry.Twist(nil)
	if c, err := s.Swap(t.Context(), "a", Request{}, Options{}); err != nil || c.State != Switched || runs() != third {
		t.Errorf("%+v, %v", c, err)
	}
	registry.Close()
	if c, err := s.Rollback(t.Context(), "a", Options{}); err != nil || c.State != Kept || runs() != first {
		t.Errorf("%+v, %v: %s runs, not %s", c, err, runs(), first)
	}
}

// TestTriedAgain: an edit whose artifact can't be had is tried again, another mistake isn't.
func TestTriedAgain(t *testing.T) {
	set, err := manifest.Parse("plugins.yaml", []byte("plugins: [{name: a, kind: registry, plugin: 'oci://x/y:1', insecure: true}]"))
	if err != nil {
		t.Fatal(err)
	}
	st := step{doSwap, set.Plugins[0]}
	for failed, want := range map[error]bool{fmt.Errorf("%w: gone", host.ErrArtifact): true, errors.New("its config"): false} {
		d := &desired{running: &running{set: set.Of(nil)}, applied: set}
		d.done(st, failed)
		next, ok := d.next()
		if ok != want {
			t.Errorf("after %v: tried again %v", failed, ok)
		}
		if waits := d.due([]step{st}, time.Now()); want && len(waits) > 0 {
			t.Error("it is tried at once")
		}
		if again := d.due([]step{st}, next); want && len(again) != 1 {
			t.Error("it is not tried in time")
		}
	}
}
