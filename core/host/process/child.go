package process

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin/runner"

	sdkprocess "github.com/coxswain-mesh/coxswain/sdk/process"
)

// child is the operating system's side of a plugin; go-plugin drives it through runner.Runner.
type child struct {
	cmd      *exec.Cmd
	stdout   *os.File
	stderr   *os.File
	lifeline *os.File // The end that the core holds open.
	theirs   []*os.File
	tail     *tail
	copy     io.Writer
	begun    func(pid int) error // Called when it runs.
	heard    chan struct{}       // Closed when its standard output was read to the end.
	told     func()              // Closes it.
	pid      atomic.Int64
	killed   atomic.Bool   // Kill was called.
	done     chan struct{} // Closed when it was waited for.
	err      error
	copied   sync.WaitGroup
}

var _ runner.Runner = (*child)(nil)

func newChild(spec Spec) *child {
	c := &child{cmd: exec.Command(spec.Path, spec.Args...), tail: newTail(), copy: spec.Stderr,
		heard: make(chan struct{}), done: make(chan struct{})}
	c.told = sync.OnceFunc(func() { close(c.heard) })
	c.begun = func(pid int) error {
		err := confine(pid, spec.OpenFiles)
		if spec.Join != nil && err == nil {
			err = spec.Join(pid)
		}
		return err
	}
	c.cmd.Dir = spec.Dir
	c.cmd.SysProcAttr = attributes()
	return c
}

// prepare makes what Start needs. handshake is the environment that go-plugin adds.
func (c *child) prepare(env, handshake []string) error {
	c.cmd.Env = append(append([]string{}, env...), handshake...)
	c.cmd.Env = append(c.cmd.Env,
		fmt.Sprintf("%s=%d", sdkprocess.LifelineEnv, sdkprocess.LifelineFD), fmt.Sprintf("%s=%d", sdkprocess.CoreEnv, os.Getpid()))
	err := c.pipes()
	if err != nil {
		c.close()
	}
	return err
}

// pipes makes the child's standard output, standard error and lifeline. Standard input is empty.
func (c *child) pipes() error {
	out, outW, err := os.Pipe()
	if err != nil {
		return err
	}
	c.stdout, c.theirs = out, append(c.theirs, outW)
	errR, errW, err := os.Pipe()
	if err != nil {
		return err
	}
	c.stderr, c.theirs = errR, append(c.theirs, errW)
	lifeR, lifeW, err := os.Pipe()
	if err != nil {
		return err
	}
	c.lifeline, c.theirs = lifeW, append(c.theirs, lifeR)
	c.cmd.Stdout, c.cmd.Stderr, c.cmd.ExtraFiles = outW, errW, []*os.File{lifeR}
	return nil
}

// Start starts the child on a thread of its own, which lives as long as the child: the parent-death signal comes when the thread
// that forked ends.
func (c *child) Start(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		for _, f := range c.theirs {
			_ = f.Close()
		}
		if err == nil {
			c.pid.Store(int64(c.cmd.Process.Pid))
			started <- c.begun(c.cmd.Process.Pid)
			c.wait()
			return
		}
		c.close()
		started <- err
	}()
	return <-started
}

// wait reads standard error and waits for the child and its group.
func (c *child) wait() {
	defer close(c.done)
	c.copied.Go(c.read)
	c.err = waitGroup(c.cmd)
	// A descendant that left the group may hold the pipes open; what is in them by now is read.
	until := time.Now().Add(terminating)
	_ = c.stdout.SetReadDeadline(until)
	_ = c.stderr.SetReadDeadline(until)
	c.copied.Wait()
	select { // or its end would be known before its first line
	case <-c.heard:
	case <-time.After(time.Until(until)):
	}
	c.close()
}

func (c *child) read() {
	lines := bufio.NewReaderSize(c.stderr, 4096)
	for {
		line, _, err := lines.ReadLine()
		if err != nil {
			return
		}
		c.tail.add(string(line))
		if c.copy != nil {
			_, _ = c.copy.Write(append(line[:len(line):len(line)], '\n'))
		}
	}
}

func (c *child) close() {
	for _, f := range []*os.File{c.stdout, c.stderr, c.lifeline} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// Wait waits for the child's end.
func (c *child) Wait(context.Context) error {
	<-c.done
	return c.err
}

// Kill kills the child's whole process group.
func (c *child) Kill(context.Context) error {
	c.killed.Store(true)
	return c.signal(syscall.SIGKILL)
}

// wasKilled reports whether an ended child ended by Kill, and not before it.
func (c *child) wasKilled() bool {
	status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return c.killed.Load() && ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

func (c *child) terminate() { _ = c.signal(syscall.SIGTERM) }

func (c *child) signal(s syscall.Signal) error {
	pid := int(c.pid.Load())
	if pid == 0 {
		return nil
	}
	select {
	case <-c.done:
		return nil
	default:
		return syscall.Kill(-pid, s)
	}
}

// exitedWithin reports whether the child ends by itself within a time.
func (c *child) exitedWithin(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.done:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

// state says how the child ended.
func (c *child) state() string { return c.cmd.ProcessState.String() }

// Stdout carries the handshake; standard error is read by the child itself.
func (c *child) Stdout() io.ReadCloser { return toTheEnd{c.stdout, c.told} }
func (c *child) Stderr() io.ReadCloser { return io.NopCloser(noLines{}) }
func (c *child) Name() string          { return c.cmd.Path }

func (c *child) ID() string {
	if pid := c.pid.Load(); pid != 0 {
		return strconv.FormatInt(pid, 10)
	}
	return ""
}

func (c *child) Diagnose(context.Context) string { return "" }

// PluginToHost and HostToPlugin: both see the same file system.
func (c *child) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

func (c *child) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}

// toTheEnd tells that a file was read to its end.
type toTheEnd struct {
	*os.File
	tell func()
}

func (r toTheEnd) Read(p []byte) (int, error) {
	n, err := r.File.Read(p)
	if err != nil {
		r.tell()
	}
	return n, err
}

type noLines struct{}

func (noLines) Read([]byte) (int, error) { return 0, io.EOF }
