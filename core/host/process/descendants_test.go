package process_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/host/family"
	"github.com/coxswain-mesh/coxswain/core/host/process"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

// fugitives is a script that starts what tries to outlive the plugin: a session of its own, a
// daemon's double fork, some without an environment, some that ignore all signals that can be; and
// then runs the plugin. Each writes its number.
const fugitives = `
echo $$ > $0/plugin
setsid sh -c 'echo $$ > '$0'/session; exec sleep 1000' &
(setsid sh -c 'echo $$ > '$0'/daemon; trap "" TERM HUP INT; while :; do sleep 1; done' &) &
(env -i PATH="$PATH" setsid sh -c 'echo $$ > '$0'/%s; exec sleep 1000' &) &
while [ $(cat $0/* | wc -l) -lt 4 ]; do sleep 0.01; done
exec "$1"`

// flight starts the plugin with fugitives, which leave their numbers in dir. secret is the name of
// the one without an environment.
func flight(t testing.TB, dir, secret string) process.Spec {
	t.Helper()
	s := spec(t)
	s.Path, s.Args = "/bin/sh", []string{"-c", fmt.Sprintf(fugitives, secret), dir, hello}
	s.Env = []string{"PATH=" + os.Getenv("PATH")}
	s.Family = &family.Family{}
	return s
}

// fled returns the processes that are alive of those that left their numbers.
func fled(t testing.TB, dir string) (alive []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 4 {
		t.Fatalf("%v %v", files, err)
	}
	for _, file := range files {
		if running(t, file) {
			alive = append(alive, filepath.Base(file))
		}
	}
	return alive
}

func running(t testing.TB, file string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return alive(pid)
}

// Whatever a plugin has started is gone when it is, however it ended, but for what got rid of its
// environment: that is for a core that is alone.
func TestDescendants(t *testing.T) {
	onLinux(t)
	for _, c := range []struct {
		how string
		end func(*process.Process)
	}{
		{"stopped", func(p *process.Process) { p.Stop(0) }},
		{"killed", func(p *process.Process) { _ = syscall.Kill(p.PID(), syscall.SIGKILL) }},
	} {
		t.Run(c.how, func(t *testing.T) {
			dir := t.TempDir()
			t.Cleanup(func() { killAll(dir) })
			p, _ := start(t, flight(t, dir, "zsecret"))
			if got := fled(t, dir); len(got) != 4 {
				t.Fatalf("only %v run", got)
			}
			c.end(p)
			<-p.Done()
			if got := fled(t, dir); !slices.Equal(got, []string{"zsecret"}) {
				t.Errorf("%v are left", got)
			}
		})
	}
}

func onLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		need.Impossible(t, "descendants are known on Linux alone")
	}
}

// killAll is for what a failed test leaves.
func killAll(dir string) {
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// A core that starts nothing but plugins gets those that hide, too; and the next one what a killed
// core leaves.
func TestDescendantsOfCore(t *testing.T) {
	onLinux(t)
	for _, c := range []struct {
		how  string
		left []string
	}{
		{"plugin dies", nil},
		{"core dies", []string{"zsecret"}}, // who has neither parent nor mark can't be told from a stranger, but by its control group
	} {
		t.Run(c.how, func(t *testing.T) {
			dir := t.TempDir()
			t.Cleanup(func() { killAll(dir) })
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "TEST_CORE_OF="+dir, "TEST_HELLO="+hello, "TEST_SOCKETS="+t.TempDir())
			cmd.Stderr = os.Stderr
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
			lines := bufio.NewScanner(out)
			if !lines.Scan() || lines.Text() != "up" {
				t.Fatal(lines.Text(), lines.Err())
			}
			if c.left == nil {
				fmt.Fprintln(in, "stop")
				if !lines.Scan() || lines.Text() != "stopped, children: 0" {
					t.Fatal(lines.Text(), lines.Err())
				}
			} else {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				family.Sweep()
			}
			if got := fled(t, dir); !slices.Equal(got, c.left) {
				t.Errorf("%v are left, not %v", got, c.left)
			}
		})
	}
}

// core is a core that is alone: it runs one plugin with fugitives until it is told to stop it, and
// says how many children it has then.
func core(dir string) {
	fail := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	fail(family.Adopt())
	hello = os.Getenv("TEST_HELLO")
	f := &family.Family{Alone: true}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	go f.Collect(ctx)
	p, err := process.Start(ctx, process.Spec{
		Name: "hello", Path: "/bin/sh", Args: []string{"-c", fmt.Sprintf(fugitives, "zsecret"), dir, hello},
		Env: []string{"PATH=" + os.Getenv("PATH")}, SocketDir: os.Getenv("TEST_SOCKETS"), StartTimeout: patience, Family: f,
	})
	fail(err)
	fmt.Println("up")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	p.Kill()
	<-p.Done()
	children, _ := filepath.Glob("/proc/self/task/*/children")
	n := 0
	for _, list := range children {
		text, _ := os.ReadFile(list)
		n += len(strings.Fields(string(text)))
	}
	fmt.Println("stopped, children:", n)
	<-ctx.Done()
}
