package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// harmless are fields with which a ServiceEntry is one that is served.
const harmless = "  ports: [{number: 80, name: http}]\n  resolution: NONE\n"

// service is a ServiceEntry with something in a field.
func service(fields string) string {
	return "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: a, namespace: b}\nspec:\n  hosts: [a.com]\n" + fields
}

// bomb is a document whose aliases stand for 9^12 words.
func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := byte('a'); i < 'l'; i++ {
		before := string(i - 1)
		if i == 'a' {
			before = "a0"
		}
		b.WriteString(string(i) + ": &" + string(i) + " [" + strings.Repeat("*"+before+", ", 8) + "*" + before + "]\n")
	}
	return b.String()
}

// hostile is a text that is meant to break a reader, the place of what is wrong, and a word of what
// is said of it.
type hostile struct{ name, text, place, says string }

func hostiles() []hostile {
	regex := strings.Repeat("(", 5) + "a" + strings.Repeat("{1000})", 5)
	route := "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a, namespace: b}\nspec:\n  hosts: [a.com]\n  http:\n" +
		"  - match: [{uri: {regex: '" + regex + "'}}]\n    route: [{destination: {host: a.com}}]\n---\n" + service(harmless)
	return []hostile{
		{"aliases", bomb() + strings.Replace(service(""), "[a.com]", "*k", 1), "hostile.yaml:", "COX"},
		{"depth", service("  x: " + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "\n"), "hostile.yaml:", "COX"},
		{"size", "#" + strings.Repeat(strings.Repeat("x", 99)+"\n#", 1<<20), "hostile.yaml:1:1", "COX1014"},
		{"entries", service("  x: [" + strings.Repeat("x,", 1<<20) + "x]\n"), "hostile.yaml:6:", "COX1005"},
		{"documents", strings.Repeat("---\na: 1\n", 100_001), "hostile.yaml:1:1", "COX1014"},
		{"no UTF-8", service("  ports: [{number: 80, name: \"\xff\xfe\"}]\n"), "hostile.yaml:", "UTF-8"},
		{"keys given twice", service("  hosts: [b.com]\n"), "hostile.yaml:6:", "COX1002"},
		{"numbers out of range", service("  ports: [{number: 99999999999999999999, name: http}]\n"), "hostile.yaml:6:", "COX"},
		{"exponential regex", route, "hostile.yaml:7:", "COX"},
		{"long regex", strings.Replace(route, regex, strings.Repeat("(a|b)*", 1<<16), 1), "hostile.yaml:7:", "COX"},
		{"long host", strings.Replace(service(harmless), "a.com", strings.Repeat("a", 10<<10), 1), "hostile.yaml:5:", "COX"},
	}
}

// TestHostileInput: what is meant to break a reader is refused with its place, by whoever reads it,
// within bounded memory.
func TestHostileInput(t *testing.T) {
	for _, c := range hostiles() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "hostile.yaml")
			place(t, file, c.text)
			said := refusedBy(t, "validate", file)
			if !strings.Contains(said, c.place) || !strings.Contains(said, c.says) {
				t.Errorf("validate says %.2000s", said)
			}
			if len(said) > 64<<10 {
				t.Errorf("validate says it in %d bytes", len(said))
			}
		})
		t.Run("plugins.yaml, "+c.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "hostile.yaml")
			place(t, file, c.text)
			if said := refusedBy(t, "discovery", "--plugins", file); !strings.Contains(said, "hostile.yaml") || len(said) > 64<<10 {
				t.Errorf("discovery says, in %d bytes, %.2000s", len(said), said)
			}
		})
	}
}

// TestHostileEdits makes a file hostile while it is served: its place is told, nothing that is
// served changes, no process grows beyond bounds or dies, and the fix clears it.
func TestHostileEdits(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "hostile.yaml")
	place(t, filepath.Join(dir, "web.yaml"), heldService)
	place(t, file, service(harmless))
	plane := mesh.Start(t, program, dir)
	plane.Ready(t)
	bootstrap := plane.Bootstrap(t, "--name", "client", "--namespace", "b", "--type", "sidecar", "--ip", "127.0.0.20", "--admin", wait.Address(t))
	id := plane.Follow(t, bootstrap, "type.googleapis.com/envoy.config.cluster.v3.Cluster")
	good := dumped(t, plane, id)
	if !strings.Contains(good, "a.com") {
		t.Fatalf("no cluster of a.com in %s", good)
	}
	before := plane.Plugins(t)
	const metric = `coxswain_config_faults{plugin="files",severity="error"}`
	for _, c := range hostiles() {
		t.Run(c.name, func(t *testing.T) {
			place(t, file, c.text)
			shows(t, plane, metric, "hostile.yaml:", c.says)
			if out := config(t, plane); !strings.Contains(out, c.place) || len(out) > 64<<10 {
				t.Errorf("coxswain config says, in %d bytes, %.2000s", len(out), out)
			}
			if dumped(t, plane, id) != good {
				t.Error("what is served has changed")
			}
			place(t, file, service(harmless))
			cleared(t, plane, metric)
			if dumped(t, plane, id) != good {
				t.Error("what is served has changed after the fix")
			}
		})
	}
	for name, p := range plane.Plugins(t) {
		if p.PID == 0 { // it waits for a client
			continue
		}
		bounded(t, name, p.PID)
		if p.PID != before[name].PID {
			t.Errorf("%s has died", name)
		}
	}
	bounded(t, "the core", plane.PID())
}

// bounded checks how much memory a process has had at most.
func bounded(t *testing.T, name string, pid int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		t.Fatalf("no VmHWM in %s", status)
	}
	used, err := strconv.Atoi(fields[0])
	t.Logf("%s had %d MiB at most", name, used>>10)
	if err != nil || used > most {
		t.Errorf("%s had %s KiB, %v", name, fields[0], err)
	}
}

// most is how many KiB a process may have at its peak, with room for the race detector's shadows.
const most = 1 << 20

// measured runs a command in a process group of its own and writes the most memory that it had, in
// KiB, to descriptor 3. What the kernel tells a parent of its child counts the parent's own memory
// until the child's exec, and these tests hold the texts: so a small process stands between.
const measured = `
import os, resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
os.write(3, str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss).encode())
sys.exit(code if code >= 0 else 0)
`

// refusedBy runs a command that must end with a failure, and returns what it said.
func refusedBy(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait.Deadline)
	defer cancel()
	peak, err := os.Create(filepath.Join(t.TempDir(), "peak"))
	if err != nil {
		t.Fatal(err)
	}
	defer peak.Close()
	cmd := exec.CommandContext(ctx, "python3", append([]string{"-c", measured, program}, args...)...)
	cmd.ExtraFiles = []*os.File{peak}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	said, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() < 1 {
		t.Errorf("%s ended with %v", args[0], err)
	}
	text, err := os.ReadFile(peak.Name())
	if err != nil {
		t.Fatal(err)
	}
	if used, err := strconv.Atoi(string(text)); err != nil || used > most {
		t.Errorf("%s had %d MiB, %v", args[0], used>>10, err)
	} else {
		t.Logf("%s had %d MiB at most", args[0], used>>10)
	}
	return string(said)
}
