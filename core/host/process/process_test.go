package process_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/host/process"
	sdkprocess "github.com/coxswain-mesh/coxswain/sdk/process"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

const patience = 20 * time.Second

// plugins is the directory of the plugins that the tests build, hello one of them.
var plugins, hello string

func TestMain(m *testing.M) {
	if path := os.Getenv("TEST_PARENT_OF"); path != "" {
		parent(path)
		return
	}
	if dir := os.Getenv("TEST_CORE_OF"); dir != "" {
		core(dir)
		return
	}
	if socket := os.Getenv("TEST_STRANGER_TO"); socket != "" {
		stranger(socket)
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "process")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	plugins, hello = dir, filepath.Join(dir, "registry-hello")
	build := exec.Command("go", "build", "-o", dir, "github.com/coxswain-mesh/coxswain/examples/registry-hello",
		"./testdata/echo", "./testdata/flood", "./testdata/broken")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Printf("building the plugin: %v\n%s", err, out)
		return 1
	}
	code := m.Run()
	if err := wait.Goroutines(); code == 0 && err != nil {
		fmt.Println(err)
		return 1
	}
	return code
}

func spec(t testing.TB) process.Spec {
	return process.Spec{Name: "hello", Path: hello, SocketDir: t.TempDir(), StartTimeout: patience}
}

func start(t testing.TB, s process.Spec) (*process.Process, *session.Core) {
	t.Helper()
	p, err := process.Start(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(0) })
	link := session.NewCore(p.Carrier())
	t.Cleanup(func() { _ = link.Close() })
	return p, link
}

func limited(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func greet(t testing.TB, link *session.Core) {
	t.Helper()
	ctx := limited(t)
	if err := link.Send(ctx, &pb.FromCore{Hello: &pb.Hello{Versions: []uint32{1}, Instance: "hello"}}); err != nil {
		t.Fatal(err)
	}
	until(t, link, func(m *pb.FromPlugin) bool { return m.Ready != nil })
}

func until(t testing.TB, link *session.Core, holds func(*pb.FromPlugin) bool) {
	t.Helper()
	for {
		m, cost, err := link.Recv(limited(t))
		if err != nil {
			t.Fatal(err)
		}
		link.Release(cost)
		if holds(m) {
			return
		}
	}
}

func empty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left in the directory for sockets: %v %v", left, err)
	}
}

func TestSession(t *testing.T) {
	for _, tls := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls=%v", tls), func(t *testing.T) {
			s := spec(t)
			s.TLS = tls
			p, link := start(t, s)
			greet(t, link)
			until(t, link, func(m *pb.FromPlugin) bool { return m.Synced != nil })
			if err := link.Send(limited(t), &pb.FromCore{Drain: &pb.Drain{}}); err != nil {
				t.Fatal(err)
			}
			if _, _, err := link.Recv(limited(t)); !errors.Is(err, io.EOF) {
				t.Errorf("after Drain: %v", err)
			}
			p.Stop(patience)
			if how := p.Wait(); how != "exit status 0" {
				t.Errorf("ended with %s", how)
			}
			empty(t, s.SocketDir)
		})
	}
}

func TestKilled(t *testing.T) {
	s := spec(t)
	p, link := start(t, s)
	greet(t, link)
	if err := syscall.Kill(p.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for {
		if _, _, err := link.Recv(limited(t)); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				t.Error("the session did not end")
			}
			t.Log(err)
			break
		}
	}
	if how := p.Wait(); how != "signal: killed" {
		t.Errorf("ended with %s", how)
	}
	empty(t, s.SocketDir)
}

// Plugin and core have 200 MB for each other at once, and the core is slow to take.
func TestBothWays(t *testing.T) {
	s := spec(t)
	s.Path = filepath.Join(plugins, "flood")
	_, link := start(t, s)
	greet(t, link)
	sent := make(chan error, 1)
	go func() {
		payload := make([]byte, 500_000)
		for i := range uint64(400) {
			err := link.Send(limited(t), &pb.FromCore{State: &pb.State{
				Revision: &pb.Revision{Number: i + 1}, Whole: i == 0,
				Tables: []*pb.TableRows{{Table: "big", Upserts: []*pb.Row{{Key: "a", Payload: payload}}}},
			}})
			if err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	got := 0
	until(t, link, func(m *pb.FromPlugin) bool {
		if m.Rows != nil {
			got++
			time.Sleep(100 * time.Microsecond)
		}
		return m.Synced != nil
	})
	if err := <-sent; err != nil || got != 400 {
		t.Errorf("%d messages arrived; sending: %v", got, err)
	}
	if s := link.Stats(); s.MostIn > session.InitialCredit || s.MostOut > session.InitialCredit {
		t.Errorf("the core held too much: %+v", s)
	}
}

// What went wrong in a plugin is known to the core, however it went wrong.
func TestBroken(t *testing.T) {
	for _, c := range []struct{ how, session, words, status, limit string }{
		{"fails", "broken: the source is gone", "these are its last words", "exit status 1", ""},
		{"crosses", "broken: it grew", "these are its last words", "exit status 1", "wasm.memory"},
		{"panics", "panic: out of cheese", "these are its last words", "exit status 1", ""},
		{"crashes", "", "panic: in a goroutine", "exit status 2", ""},
	} {
		t.Run(c.how, func(t *testing.T) {
			s := spec(t)
			s.Path = filepath.Join(plugins, "broken")
			p, link := start(t, s)
			hello := &pb.Hello{Versions: []uint32{1}, Config: []byte(strconv.Quote(c.how))}
			if err := link.Send(limited(t), &pb.FromCore{Hello: hello}); err != nil {
				t.Fatal(err)
			}
			var err error
			for err == nil {
				_, _, err = link.Recv(limited(t))
			}
			if !strings.Contains(err.Error(), c.session) {
				t.Errorf("the session ended with %v, want %q in it", err, c.session)
			}
			if limit := session.CrossedLimit(err); limit != c.limit {
				t.Errorf("the session ended with limit %q, want %q", limit, c.limit)
			}
			p.Stop(patience)
			if how := p.Wait(); how != c.status {
				t.Errorf("ended with %s, want %s", how, c.status)
			}
			if words := strings.Join(p.Stderr(), "\n"); !strings.Contains(words, c.words) {
				t.Errorf("standard error has no %q:\n%s", c.words, words)
			}
		})
	}
}

// A plugin that is stopped answers nothing: it must be killed all the same.
func TestStopHung(t *testing.T) {
	s := spec(t)
	p, link := start(t, s)
	greet(t, link)
	if err := syscall.Kill(p.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped(t, p.PID())
	p.Stop(0)
	if how := p.Wait(); how != "signal: killed" {
		t.Errorf("ended with %s", how)
	}
	empty(t, s.SocketDir)
}

// stopped waits until the kernel has stopped a process; the signal alone is only the wish.
func stopped(t *testing.T, pid int) {
	t.Helper()
	for ctx := limited(t); ctx.Err() == nil; runtime.Gosched() {
		if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); strings.Contains(string(b), ") T ") {
			return
		}
	}
	t.Fatalf("pid %d is not stopped", pid)
}

func TestStartErrors(t *testing.T) {
	for _, c := range []struct {
		name, path string
		args       []string
		want       string
	}{
		{"no such file", "/nowhere/at/all", nil, "no such file"},
		{"not a plugin", "/bin/sh", []string{"-c", "echo it is broken >&2; exit 3"}, "exit status 3"},
		{"its words", "/bin/sh", []string{"-c", "echo it is broken >&2; exit 3"}, "it is broken"},
		{"never speaks", "/bin/sh", []string{"-c", "sleep 1000"}, "timeout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := spec(t)
			s.Path, s.Args = c.path, c.args
			if c.want == "timeout" {
				s.StartTimeout = 100 * time.Millisecond
			}
			_, err := process.Start(context.Background(), s)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
			empty(t, s.SocketDir)
		})
	}
}

func TestStartCanceled(t *testing.T) {
	s := spec(t)
	s.Path, s.Args = "/bin/sh", []string{"-c", "sleep 1000"}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := process.Start(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestByHand(t *testing.T) {
	out, err := exec.Command(hello).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), "kind: registry") {
		t.Errorf("%v: %s", err, out)
	}
}

// No orphans: the plugin ends when the core is killed, by the lifeline alone too.
func TestOrphan(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "TEST_PARENT_OF="+hello, "TEST_SOCKETS="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(line)
	}
	if syscall.Kill(pid, 0) != nil {
		t.Fatalf("process %d is not there", pid)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for end := time.Now().Add(patience); alive(pid); {
		if time.Now().After(end) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("the plugin outlived the core")
		}
		time.Sleep(time.Millisecond)
	}
}

// The lifeline alone ends a plugin: no signal comes, no session ever began.
func TestLifeline(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	shake := sdkprocess.Handshake()
	cmd := exec.Command(hello)
	cmd.Env = []string{shake.MagicCookieKey + "=" + shake.MagicCookieValue, sdkprocess.LifelineEnv + "=3", "TMPDIR=" + t.TempDir()}
	cmd.ExtraFiles = []*os.File{r}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(patience, func() { _ = cmd.Process.Kill() }).Stop()
	_ = r.Close()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(line, err)
	}
	_ = w.Close()
	_ = cmd.Wait()
	if how := cmd.ProcessState.String(); how != "exit status 1" {
		t.Errorf("ended with %s", how)
	}
}

// alive reports whether a process is there and not merely waiting to be collected by whoever
// inherited it.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

// parent is a core that starts a plugin, says its number and waits to be killed.
func parent(path string) {
	p, err := process.Start(context.Background(), process.Spec{
		Name: "hello", Path: path, SocketDir: os.Getenv("TEST_SOCKETS"), StartTimeout: patience,
	})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(p.PID())
	select {}
}

// BenchmarkRoundTrip is a call and its answer over a real process.
func BenchmarkRoundTrip(b *testing.B) {
	for name, size := range map[string]int{"100B": 100, "100KB": 100_000} {
		b.Run(name, func(b *testing.B) {
			s := spec(b)
			s.Path = filepath.Join(plugins, "echo")
			_, link := start(b, s)
			greet(b, link)
			ctx := context.Background()
			m := &pb.FromCore{Authenticate: &pb.Authenticate{RemoteAddress: strings.Repeat("a", size)}}
			b.SetBytes(int64(2 * size))
			for b.Loop() {
				if err := link.Send(ctx, m); err != nil {
					b.Fatal(err)
				}
				_, cost, err := link.Recv(ctx)
				if err != nil {
					b.Fatal(err)
				}
				link.Release(cost)
			}
		})
	}
}
