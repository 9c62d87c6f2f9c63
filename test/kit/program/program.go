// Package program finds and runs the servers that tests need: programs of nested modules, which
// `make TARGET` builds into the user's cache folder, once for each go.sum. It builds the last
// release, too.
package program

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

// Built is the folder in which `make TARGET` puts the programs of a nested module (a path in the
// repository). Without one of those that are named the test is skipped.
func Built(t testing.TB, module, target string, names ...string) string {
	t.Helper()
	return Cached(t, module+"/go.sum", target, names...)
}

// Cached is the folder in the user's cache where `make TARGET` puts what a file, by its path from
// the repository's root, says. Without one of what is named the test is skipped.
func Cached(t testing.TB, file, target string, names ...string) string {
	t.Helper()
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), file))
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(sums)
	dir := filepath.Join(cache, "coxswain", target+"-"+hex.EncodeToString(hash[:])[:16])
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			need.Missing(t, "%s; `make %s` gets it", name, target)
		}
	}
	return dir
}

// Process is a program that runs.
type Process struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{}
}

// Start starts a program. It ends with the test, or with the test's process.
func Start(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	name := filepath.Base(cmd.Path)
	p := &Process{cmd: cmd, log: filepath.Join(t.TempDir(), name), ended: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if p.cmd.SysProcAttr == nil {
		p.cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if err := Begin(p.cmd, p.ended); err != nil {
		t.Fatal(err)
	}
	go func() { _ = p.cmd.Wait(); close(p.ended) }()
	t.Cleanup(func() {
		p.Stop()
		if t.Failed() {
			t.Logf("%s (%d) said last:\n%s", name, p.PID(), p.Last())
		}
	})
	return p
}

// Begin starts a program that is killed with this process. ended is closed once it was waited for.
func Begin(cmd *exec.Cmd, ended <-chan struct{}) error {
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	begun := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the signal comes when the thread ends that started the process: it ends with this goroutine
		err := cmd.Start()
		if begun <- err; err == nil {
			<-ended
		}
	}()
	return <-begun
}

// PID of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Stop kills it. It may be called twice.
func (p *Process) Stop() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// Runs reports whether it does.
func (p *Process) Runs() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// EndsWithin waits until it has ended, for so long at most, and reports whether it has.
func (p *Process) EndsWithin(patience time.Duration) bool {
	select {
	case <-p.ended:
		return true
	case <-time.After(patience):
		return false
	}
}

// Last are the last lines that it said.
func (p *Process) Last() string {
	text, _ := os.ReadFile(p.log)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}
