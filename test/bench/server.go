package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/coxswain-mesh/coxswain/test/bench/usage"
)

// The servers that are compared.
const (
	coxswain = "coxswain"
	floor    = "floor"
	peer     = "go-control-plane"
)

const (
	starting = 60 * time.Second
	stopping = 10 * time.Second
)

// server is one that runs.
type server struct {
	kind      string
	xds, ctl  string
	cmd       *exec.Cmd
	log       *os.File
	ended     chan struct{}
	memory    *usage.Memory
	dir, self string
	tools     string
	// monitoring is the address of the port with the page, whose events watchers clients follow.
	monitoring string
	watchers   int
	unwatch    context.CancelFunc
}

// start starts a server for a load, and returns when it can be asked.
func start(ctx context.Context, c config, kind string, l load) (*server, error) {
	s, err := newServer(c, kind, l)
	if err != nil {
		return nil, err
	}
	return s, s.start(ctx, c.path("log", fmt.Sprintf("%s-%s.log", l.name(), kind)))
}

// newServer returns a server with its command.
func newServer(c config, kind string, l load) (*server, error) {
	ports, err := free(3)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &server{kind: kind, xds: ports[0], ctl: ports[1], dir: c.path("mesh", l.mesh), self: self, tools: c.tools, ended: make(chan struct{})}
	dump := c.path("dump", l.mesh)
	v, ours := c.variant(kind)
	s.monitoring, s.watchers = ports[2], v.watchers
	switch {
	case ours:
		s.cmd = exec.Command(v.program, "discovery", "--plugins", c.path("plugins.yaml"), "--configDir", s.dir, "--debounceAfter", "1ms",
			"--grpcAddr", s.xds, "--httpAddr", s.ctl, "--monitoringAddr", ports[2], "--logLevel", "warn")
		if c.meshConfig != "" {
			s.cmd.Args = append(s.cmd.Args, "--meshConfig", c.meshConfig)
		}
		s.cmd.Args = append(s.cmd.Args, v.args...)
		if c.profile {
			s.cmd.Env = append(os.Environ(), "COXSWAIN_PROFILE="+c.path("profile"))
		}
	case kind == floor:
		s.cmd = exec.Command(c.tool("floor"), "-addr", s.xds, "-ctl", s.ctl, "-dump", dump)
	case kind == peer:
		s.cmd = exec.Command(c.tool("gocontrolplane"), "-addr", s.xds, "-ctl", s.ctl, "-cache", "linear", "-dump", dump)
	}
	return s, nil
}

func (s *server) start(ctx context.Context, log string) (err error) {
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		return err
	}
	if s.log, err = os.Create(log); err != nil {
		return err
	}
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	go func() { _ = s.cmd.Wait(); close(s.ended) }()
	s.memory = usage.Watch(s.cmd.Process.Pid)
	if err := s.ready(ctx); err != nil {
		s.stop()
		return fmt.Errorf("%s: %w; its log is %s", s.kind, err, log)
	}
	ctx, s.unwatch = context.WithCancel(ctx)
	for range s.watchers {
		if err := s.watch(ctx); err != nil {
			s.stop()
			return fmt.Errorf("the page's events: %w", err)
		}
	}
	return nil
}

// watch follows the page's events, and reads them all, until the server ends.
func (s *server) watch(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.monitoring+"/ui/events", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return errors.New(resp.Status)
	}
	go func() {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}()
	return nil
}

func (s *server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, starting)
	defer cancel()
	for {
		if s.answers() {
			return nil
		}
		select {
		case <-s.ended:
			return fmt.Errorf("it has ended: %v", s.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("not ready after %v", starting)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// ours reports whether it is the control plane.
func (s *server) ours() bool { return s.kind != peer && s.kind != floor }

func (s *server) answers() bool {
	if s.ours() {
		resp, err := http.Get("http://" + s.ctl + "/ready")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}
	conn, err := net.Dial("tcp", s.xds)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

// stop ends the server, and waits until it is gone.
func (s *server) stop() {
	if s.unwatch != nil {
		s.unwatch()
	}
	s.memory.Close()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(stopping):
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
	_ = s.log.Close()
}

// touch returns the command that makes a change; empty if this server has none for it.
func (s *server) touch(e edit, delta bool) string {
	switch {
	case s.ours():
		t := strings.ReplaceAll(e.mesh, "bench remove", s.self+" remove "+s.dir)
		return strings.ReplaceAll(t, "meshgen", filepath.Join(s.tools, "meshgen")+" -dir "+s.dir)
	case s.kind == peer:
		if e.peerKind == "" {
			return ""
		}
		return fmt.Sprintf("%s post 'http://%s/touch?kind=%s&marker=%s'", s.self, s.ctl, e.peerKind, marker(e))
	}
	writes := e.floor
	if delta {
		writes = e.delta
	}
	if len(writes) == 0 {
		return ""
	}
	t := s.self + " post"
	for _, w := range writes {
		typ, n, _ := strings.Cut(w, ":")
		t += fmt.Sprintf(" 'http://%s/touch?type=%s&marker=%s&resources=%s'", s.ctl, typ, marker(e), n)
	}
	return t
}

// shell runs a touch.
func shell(command string) error {
	out, err := exec.Command("sh", "-c", command).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, out)
	}
	return nil
}

// marker is what a sidecar looks for.
func marker(e edit) string {
	if _, m, _ := strings.Cut(e.expect, ":"); m != "" {
		return m
	}
	return "{marker}"
}

// signal tells all processes of the server to begin or end their profiles.
func (s *server) signal() {
	for _, pid := range usage.Tree(s.cmd.Process.Pid) {
		_ = syscall.Kill(pid, syscall.SIGUSR1)
	}
	time.Sleep(200 * time.Millisecond)
}

// free returns loopback addresses that nobody listens on.
func free(n int) ([]string, error) {
	var all []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }()
		all = append(all, l.Addr().String())
	}
	return all, nil
}
