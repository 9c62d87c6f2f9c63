// Package mutual runs examples/mutual by `make mutual`, as a user does, and calls its workloads. The demo's ports are
// fixed, so that it has a network namespace of its own.
package mutual

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/envoy"
	"github.com/coxswain-mesh/coxswain/test/need"
	"github.com/coxswain-mesh/coxswain/test/netns"
)

func TestMain(m *testing.M) {
	netns.Main()
	if len(os.Args) > 2 && os.Args[1] == "visit" {
		if err := visit(os.Args[2:]); err != nil {
			fmt.Println("not as the demo says:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestMutual: the client calls web by mutual TLS, and plain text gets nowhere.
func TestMutual(t *testing.T) {
	envoy.Binary(t)
	root, served := envoy.Root(t), filepath.Join(t.TempDir(), "served")
	if _, err := exec.LookPath("make"); err != nil {
		need.Missing(t, "no make, which runs the demo: install it")
	}
	short, err := os.MkdirTemp("", "cox") // paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := netns.Command(t, self, "visit", "make", "--no-print-directory", "-C", root, "mutual", "MUTUAL_DIR="+served)
	// What a make around this test says to its own children is not for this one.
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+short, "MAKEFLAGS=", "MAKELEVEL=", "MFLAGS=")
	out, err := cmd.CombinedOutput()
	if err == nil {
		return
	}
	t.Errorf("%v\n%s", err, out)
	logs, _ := filepath.Glob(filepath.Join(served, "*.log"))
	for _, log := range logs {
		b, _ := os.ReadFile(log)
		t.Logf("%s:\n%s", filepath.Base(log), b[max(0, len(b)-2000):])
	}
}

// visit runs the demo, and calls its workloads once it says how.
func visit(args []string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stderr = os.Stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines, said := bufio.NewReader(out), ""
	for err == nil && !strings.Contains(said, "Ctrl-C stops everything.") {
		var line string
		line, err = lines.ReadString('\n')
		said += line
	}
	var rest []byte
	var read sync.WaitGroup
	read.Go(func() { rest, _ = io.ReadAll(lines) }) // a pipe that nobody reads would stop the demo
	if err == nil {
		err = call()
	}
	if err == nil {
		err = cmd.Process.Signal(syscall.SIGTERM)
	} else {
		_ = cmd.Process.Kill()
	}
	read.Wait()
	_ = cmd.Wait() // make says that it was ended
	fmt.Print(said, string(rest))
	if err == nil && !strings.Contains(string(rest), "stopping") {
		err = errors.New("it does not stop by itself")
	}
	return err
}

func call() error {
	client := http.Client{Timeout: 5 * time.Second}
	get := func(url string) (string, error) {
		r, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil {
			return "", err
		}
		r.Host = "web.shop"
		answer, err := client.Do(r)
		if err != nil {
			return "", err
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		return fmt.Sprintf("%d %s", answer.StatusCode, text), err
	}
	if said, err := get("http://127.0.0.1:7180"); err != nil || said != "200 web is called by spiffe://cluster.local/ns/shop/sa/client\n" {
		return fmt.Errorf("web says %q, %v", said, err)
	}
	if said, err := get("http://127.0.0.1:7443"); err == nil {
		return fmt.Errorf("plain text is answered: %q", said)
	}
	return nil
}
