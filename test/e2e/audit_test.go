package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/audit"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

const auditSet = `plugins:
  - {name: files, kind: config, builtin: config/file, rollback: {window: 300ms}, config: {dir: resources}}
  - {name: serviceentry, kind: registry, builtin: registry/serviceentry}
  - {name: istio, kind: generator, builtin: generator/istio}
`

// TestAuditLog: who changed a plugin is in the file and in what the command says: the process of a
// command, the file that was edited, who let a hold through, and that a plugin failed.
func TestAuditLog(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "audit.jsonl")
	resources := filepath.Join(dir, "resources")
	if err := os.Mkdir(resources, 0o700); err != nil {
		t.Fatal(err)
	}
	place(t, filepath.Join(resources, "web.yaml"), heldService)
	b := newBenchIn(t, dir, auditSet, "--auditLog", file)
	p := newProxy(t, b.plane, "audit", nil)
	wait.For(t, "it has the cluster", func() error { return p.want("outbound|80||web.example", true) })

	restarted := commanded(t, "plugins", "restart", "istio")
	audited(t, file, "a restart by command", func(e audit.Entry) bool {
		return e.What == "restart" && e.Plugin == "istio" && e.Outcome == "switched" && by(e, restarted)
	})
	commanded(t, "plugins", "restart", "istio", "--dry-run")

	place(t, b.file, strings.Replace(auditSet, "window: 300ms", "window: 200ms", 1))
	audited(t, file, "an edit of plugins.yaml", func(e audit.Entry) bool {
		return e.What == "swap" && e.Plugin == "files" && e.Outcome == "switched" && e.Who.By == b.file && e.Who.UID == nil &&
			fmt.Sprint(e.Changed) == "[rollback]"
	})

	// Whoever moves the file away need not tell.
	if err := os.Rename(file, file+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(resources, "web.yaml")); err != nil {
		t.Fatal(err)
	}
	waitHeld(t, "files")
	applied := commanded(t, "hold", "apply", "files")
	wait.For(t, "it is let through", func() error { return p.want("outbound|80||web.example", false) })
	audited(t, file, "a hold that was let through", func(e audit.Entry) bool {
		return e.What == "hold apply" && e.Plugin == "files" && e.Outcome == "done" && len(e.Reasons) > 0 && by(e, applied)
	})

	if err := syscall.Kill(b.detail("serviceentry").PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	audited(t, file, "a plugin that failed", func(e audit.Entry) bool {
		return e.What == "failure" && e.Plugin == "serviceentry" && e.Who.By == audit.ByCrash && len(e.Reasons) == 1
	})
	text, _ := b.plugins("log", "istio")
	if !strings.Contains(text, "istio: restart switched, by ") || strings.Count(text, "istio: ") != 1 ||
		!strings.Contains(text, fmt.Sprintf("(uid %d) by coxswain %d", os.Getuid(), restarted)) {
		t.Errorf("it says\n%s", text)
	}
}

// commanded runs the program and returns the number of its process.
func commanded(t *testing.T, args ...string) (pid int) {
	t.Helper()
	cmd := exec.Command(program, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return cmd.Process.Pid
}

// by reports whether an entry is of a process of this test's user.
func by(e audit.Entry, pid int) bool {
	return e.Who.By == audit.ByCommand && e.Who.PID == pid && e.Who.UID != nil && *e.Who.UID == os.Getuid() && e.Who.Command == "coxswain"
}

// audited waits for exactly one such line.
func audited(t *testing.T, file, what string, is func(audit.Entry) bool) {
	t.Helper()
	wait.For(t, what+" is in the audit log", func() error {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		n := 0
		for line := range strings.Lines(string(text)) {
			var e audit.Entry
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				return err
			}
			if is(e) {
				n++
			}
		}
		if n != 1 {
			return fmt.Errorf("%d such lines in\n%s", n, text)
		}
		return nil
	})
}
