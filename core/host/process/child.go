package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin/runner"

	"github.com/coxswain-mesh/coxswain/core/host/family"
	"github.com/coxswain-mesh/coxswain/core/host/sandbox"
	"github.com/coxswain-mesh/coxswain/sdk/listen"
	sdkprocess "github.com/coxswain-mesh/coxswain/sdk/process"
)

// child is the operating system's side of a plugin; go-plugin drives it through runner.Runner.
type child struct {
	cmd      *exec.Cmd
	stdout   *os.File
	stderr   *os.File
	lifeline *os.File // The end that the core holds open.
	theirs   []*os.File
	// inherited are open in the child, after the lifeline; the last of them are sockets, which it
	// is told in an environment variable.
	inherited []*os.File
	sockets   []Socket
	tail      *tail
	copy      io.Writer
	leftOut   func(lines, bytes int)
	openFiles uint64
	family    *family.Family
	mark      string
	rules     sandbox.Rules
	report    atomic.Pointer[sandbox.Report]
	heard     chan struct{} // Closed when its standard output was read to the end.
	told      func()        // Closes it.
	number    number
	killed    atomic.Bool   // Kill was called.
	done      chan struct{} // Closed when it was waited for.
	err       error
	copied    sync.WaitGroup
}

var _ runner.Runner = (*child)(nil)

func newChild(spec Spec) *child {
	c := &child{cmd: exec.Command(spec.Path, spec.Args...), tail: newTail(), copy: spec.Stderr, leftOut: spec.LeftOut,
		openFiles: spec.OpenFiles, heard: make(chan struct{}), done: make(chan struct{})}
	c.told = sync.OnceFunc(func() { close(c.heard) })
	c.cmd.Dir = spec.Dir
	c.cmd.SysProcAttr = attributes(spec)
	c.rules = spec.Sandbox
	if c.family = spec.Family; c.family == nil {
		c.family = &family.Family{}
	}
	c.inherits(spec)
	return c
}

// LifelineFD is followed by the program, if that is given open, and the other files.
const firstInherited = sdkprocess.LifelineFD + 1

// Inherited is the path under which a process sees the nth of Spec.Files; program reports whether
// there is Spec.Program.
func Inherited(n int, program bool) string {
	if program {
		n++
	}
	return fmt.Sprintf("/proc/self/fd/%d", firstInherited+n)
}

// inherits notes the open files. The program is executed by the path that it has in the child:
// /proc/PID/fd of the core is closed to whoever is not the core, once that hides itself.
func (c *child) inherits(spec Spec) {
	c.inherited = slices.Clone(spec.Files)
	if spec.Program != nil {
		c.inherited = append([]*os.File{spec.Program}, spec.Files...)
		c.cmd.Path = Inherited(-1, true)
		c.cmd.Args[0] = spec.Path
	}
	c.sockets = spec.Sockets
	for _, s := range c.sockets {
		c.inherited = append(c.inherited, s.File)
	}
}

// given says which sockets the child has.
func (c *child) given() string {
	var all []string
	first := firstInherited + len(c.inherited) - len(c.sockets)
	for i, s := range c.sockets {
		all = append(all, fmt.Sprintf("%s=%d", s.Address, first+i))
	}
	return listen.Env + "=" + strings.Join(all, ",")
}

// prepare makes what Start needs. handshake is the environment that go-plugin adds.
func (c *child) prepare(env, handshake []string) error {
	c.cmd.Env = append(append([]string{}, env...), handshake...)
	c.cmd.Env = append(c.cmd.Env,
		fmt.Sprintf("%s=%d", sdkprocess.LifelineEnv, sdkprocess.LifelineFD), fmt.Sprintf("%s=%d", sdkprocess.CoreEnv, os.Getpid()))
	if len(c.sockets) > 0 {
		c.cmd.Env = append(c.cmd.Env, c.given())
	}
	c.mark = c.family.Mark()
	c.cmd.Env = append(c.cmd.Env, family.Env+"="+c.mark)
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
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	c.theirs = append(c.theirs, null)
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = null, outW, errW
	c.cmd.ExtraFiles = append([]*os.File{lifeR}, c.inherited...)
	return nil
}

// Start starts the child on a thread of its own, which lives as long as the child: the parent-death
// signal comes when the thread that forked ends. What the sandbox takes is taken from that thread,
// so that the child begins without it.
func (c *child) Start(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		c.abandon()
		return err
	}
	started, exited := make(chan error), make(chan struct{})
	sandbox.OnThread(func() {
		err := c.fork()
		started <- err
		if err == nil {
			awaitExit(c.cmd)
			close(exited)
		}
	})
	if err := <-started; err != nil {
		c.abandon()
		return err
	}
	c.release()
	c.copied.Go(c.read)
	go func() {
		<-exited
		c.wait()
	}()
	if c.killed.Load() { // before it had a number
		_ = c.signal(syscall.SIGKILL)
	}
	return c.confine()
}

// confine sets the limits of the child, unless it has ended.
func (c *child) confine() error {
	return c.confined(c.number.owned(func(pid int) error { return confine(pid, c.openFiles) }))
}

// confined reports whether a process's limits could be set. Those of another user's may not be,
// where the core is root without CAP_SYS_RESOURCE, as in containers; that is reported.
func (c *child) confined(err error) error {
	if c.cmd.SysProcAttr.Credential == nil || !errors.Is(err, syscall.EPERM) {
		return err
	}
	const what = "hold another user's process to limits.openFiles and to no core dumps: the core has no CAP_SYS_RESOURCE"
	report := *c.report.Load()
	if !slices.Contains(report.Lacking, what) {
		report.Lacking = append(slices.Clone(report.Lacking), what)
		c.report.Store(&report)
	}
	return nil
}

// release closes the ends of the pipes that are the child's.
func (c *child) release() {
	for _, f := range c.theirs {
		_ = f.Close()
	}
}

// abandon undoes prepare, where nothing was started.
func (c *child) abandon() {
	c.family.End(c.mark)
	c.release()
	c.close()
}

// fork starts the child, from a thread that has no more than the child is to have.
func (c *child) fork() error {
	report, err := sandbox.Enter(c.rules)
	if err != nil {
		return err
	}
	c.report.Store(&report)
	return c.family.Start(func() (int, error) {
		err := c.cmd.Start()
		if err != nil {
			return 0, err
		}
		c.number.pid.Store(int64(c.cmd.Process.Pid))
		return c.cmd.Process.Pid, nil
	})
}

// PID of the child; 0: there is none.
func (c *child) PID() int { return int(c.number.pid.Load()) }

// wait ends what is left of an ended child: its process group, and then whatever else it started.
func (c *child) wait() {
	defer close(c.done)
	c.err = c.collect()
	c.family.Waited(c.PID())
	c.family.End(c.mark)
	// A descendant that got away may hold the pipes open; what is in them by now is read.
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

func (c *child) read() { newStderr(c.tail, c.copy, c.leftOut).run(c.stderr) }

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

// signal sends a signal to all of the child's process group.
func (c *child) signal(s syscall.Signal) error {
	return c.number.owned(func(pid int) error { return syscall.Kill(-pid, s) })
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
	if pid := c.PID(); pid != 0 {
		return strconv.Itoa(pid)
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
