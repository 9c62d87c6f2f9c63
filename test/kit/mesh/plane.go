// Package mesh runs what a test of the whole needs around Envoys: the control plane as users start
// it, backends and clients. All of it listens on loopback addresses alone and ends with the test.
package mesh

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/test/kit/page"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// Plane is a running `coxswain discovery`.
type Plane struct {
	XDS, HTTP, Monitoring string
	// Secure is the port over TLS, which is open where the set can have a certificate for it.
	Secure string

	binary  string
	args    []string
	prepare func(*exec.Cmd)
	cmd     *exec.Cmd
	log     string // its file
	ended   chan struct{}
}

// Start starts the program on a directory of configuration, if there is one. Args come in addition.
func Start(t testing.TB, binary, dir string, args ...string) *Plane {
	t.Helper()
	return StartWith(t, func(*exec.Cmd) {}, binary, dir, args...)
}

// StartWith starts it as Start does, after prepare has changed how.
func StartWith(t testing.TB, prepare func(*exec.Cmd), binary, dir string, args ...string) *Plane {
	t.Helper()
	p := &Plane{XDS: wait.Address(t), Secure: wait.Address(t), HTTP: wait.Address(t), Monitoring: wait.Address(t), binary: binary, prepare: prepare}
	if dir != "" {
		args = append(args, "--configDir", dir)
	}
	p.args = append([]string{"discovery", "--grpcAddr", p.XDS, "--secureGRPCAddr", p.Secure, "--httpAddr", p.HTTP, "--monitoringAddr", p.Monitoring}, args...)
	p.start(t)
	return p
}

// StartShared starts it as Start does, with one port for pages and xDS.
func StartShared(t testing.TB, binary, dir string, args ...string) *Plane {
	t.Helper()
	p := Start(t, binary, dir, append(args, "--grpcAddr=")...)
	p.XDS = p.HTTP
	return p
}

// Again starts a control plane that has ended anew, on the same addresses.
func (p *Plane) Again(t testing.TB) *Plane {
	t.Helper()
	<-p.ended
	next := &Plane{XDS: p.XDS, Secure: p.Secure, HTTP: p.HTTP, Monitoring: p.Monitoring, binary: p.binary, args: p.args, prepare: p.prepare}
	next.start(t)
	return next
}

func (p *Plane) start(t testing.TB) {
	t.Helper()
	// In a file is what it has said, at once: a pipe would have to be read by this process first.
	log, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	p.log, p.ended = log.Name(), make(chan struct{})
	p.cmd = exec.Command(p.binary, p.args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{}
	p.prepare(p.cmd)
	p.cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL // for tests that are killed
	begun := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the signal comes when the thread ends that started the process: it ends with this goroutine
		err := p.cmd.Start()
		if begun <- err; err != nil {
			return
		}
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	if err := <-begun; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("the control plane said last:\n%s", p.LastLines(60))
		}
	})
}

// PID of its process.
func (p *Plane) PID() int { return p.cmd.Process.Pid }

// Kill ends it at once. It may be called twice.
func (p *Plane) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// Stop asks it to end, and returns its exit code.
func (p *Plane) Stop(t testing.TB) int {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	return p.Wait(t)
}

// Wait waits until it has ended by itself, and returns its exit code.
func (p *Plane) Wait(t testing.TB) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(wait.Deadline):
		t.Fatalf("the control plane has not ended after %v", wait.Deadline)
	}
	return p.cmd.ProcessState.ExitCode()
}

// Ready waits until proxies are served.
func (p *Plane) Ready(t testing.TB) {
	t.Helper()
	wait.For(t, "the control plane is ready", func() error {
		select {
		case <-p.ended:
			t.Fatalf("the control plane has ended:\n%s", p.LastLines(60))
		default:
		}
		_, err := p.Get("/ready")
		return err
	})
}

// Get returns a page of its HTTP port.
func (p *Plane) Get(path string) (string, error) { return page.Get(p.HTTP, path) }

// Plugins returns what `coxswain plugins` shows, by name.
func (p *Plane) Plugins(t testing.TB) map[string]admin.Plugin {
	t.Helper()
	out, err := exec.Command(p.binary, "plugins", "--addr", p.HTTP, "-o", "json").Output()
	if err != nil {
		t.Fatalf("coxswain plugins: %v", err)
	}
	var list []admin.Plugin
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatalf("coxswain plugins: %v in %s", err, out)
	}
	byName := map[string]admin.Plugin{}
	for _, v := range list {
		byName[v.Name] = v
	}
	return byName
}

// Signal sends a signal to a plugin's process, and returns what the plugin was before. One without
// a process (number 0 would be the test's own process group) fails the test.
func (p *Plane) Signal(t testing.TB, plugin string, s syscall.Signal) admin.Plugin {
	t.Helper()
	before := p.Plugins(t)[plugin]
	if before.PID <= 0 {
		t.Fatalf("%s has no process: %+v", plugin, before)
	}
	if err := syscall.Kill(before.PID, s); err != nil {
		t.Fatalf("%s (pid %d): %v", plugin, before.PID, err)
	}
	return before
}

// Bootstrap returns what `coxswain bootstrap` prints for a proxy of this control plane. Tests call
// it hundreds of times, so the program is one without the race detector where that is built
// already.
func (p *Plane) Bootstrap(t testing.TB, args ...string) []byte {
	t.Helper()
	var complaint bytes.Buffer
	cmd := exec.Command(cmp.Or(plain(), p.binary), append([]string{"bootstrap", "--xds", p.XDS}, args...)...)
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("coxswain bootstrap: %v: %s", err, complaint.String())
	}
	return out
}

// Dump returns what it has for the connected proxy with a bootstrap (JSON), in the form of Envoy's
// /config_dump.
func (p *Plane) Dump(t testing.TB, bootstrap []byte) []byte {
	t.Helper()
	text, err := p.Get("/debug/config_dump?proxyID=" + url.QueryEscape(node(t, bootstrap).Id))
	if err != nil {
		t.Fatal(err)
	}
	return []byte(text)
}

// Log returns what it has said.
func (p *Plane) Log() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// LastLines of its log.
func (p *Plane) LastLines(n int) string {
	lines := slices.Collect(strings.Lines(p.Log()))
	return strings.Join(lines[max(0, len(lines)-n):], "")
}
