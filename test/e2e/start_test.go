package e2e

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
)

const (
	clusters  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	listeners = "type.googleapis.com/envoy.config.listener.v3.Listener"
)

// TestEmptyDirectory serves what lets traffic pass or stops it, as istiod does.
func TestEmptyDirectory(t *testing.T) {
	plane := mesh.Start(t, program, t.TempDir(), "--meshConfig", "/dev/null", "--networksConfig", filepath.Join(t.TempDir(), "missing"))
	plane.Ready(t)
	sidecar := plane.Bootstrap(t, "--ip", "10.0.0.1")
	for typeURL, want := range map[string][]string{
		clusters:  {"BlackHoleCluster", "InboundPassthroughCluster", "PassthroughCluster"},
		listeners: {"virtualInbound", "virtualOutbound"},
	} {
		if got := mesh.Names(t, plane.Fetch(t, sidecar, typeURL)); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", typeURL, got, want)
		}
	}
}

// TestStartErrors: what can't work ends the program at once, with the reason.
func TestStartErrors(t *testing.T) {
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "plugins.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		name, dir string
		args      []string
		want      []string
	}{
		{"missing directory", "/nonexistent/config", nil, []string{"/nonexistent/config"}},
		{"plugin that dies", t.TempDir(), []string{"--plugins", file(`
plugins:
- name: files
  kind: config
  builtin: config/file
- name: sick
  kind: registry
  insecure: true
  process: {command: /bin/sh, args: ["-c", "echo I am sick >&2; exit 3"]}
`)}, []string{"sick", "I am sick"}},
		{"mistake in plugins.yaml", t.TempDir(), []string{"--plugins", file("plugins:\n- nam: x\n")}, []string{"plugins.yaml:2:3", "name"}},
		{"nobody takes the directory", t.TempDir(), []string{"--plugins", file("plugins:\n- name: m\n  kind: config\n  builtin: config/mesh\n")},
			[]string{"--configDir", "config/file"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			plane := mesh.Start(t, program, c.dir, c.args...)
			if code := plane.Wait(t); code == 0 {
				t.Error("exit code 0")
			}
			for _, part := range c.want {
				if !strings.Contains(plane.Log(), part) {
					t.Errorf("no %q in\n%s", part, plane.Log())
				}
			}
		})
	}
}

// TestTakenPort: a port that another program has is all that is said, before any plugin is.
func TestTakenPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	out, err := exec.Command(program, "discovery", "--configDir", t.TempDir(), "--httpAddr", "127.0.0.1:0",
		"--monitoringAddr", l.Addr().String(), "--grpcAddr", "127.0.0.1:0", "--secureGRPCAddr", "none").CombinedOutput()
	if err == nil || strings.Count(string(out), "\n") != 1 || !strings.Contains(string(out), "coxswain: monitoring port: ") {
		t.Errorf("%v: %s", err, out)
	}
}
