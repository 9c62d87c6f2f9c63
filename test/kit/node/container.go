package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// container of a pod. The pod's lock is for what changes.
type container struct {
	is   *corev1.Container
	init bool

	logs, earlier *logs // of this run, and of the one before

	started        time.Time // of this run
	up             bool      // its startup probe has passed
	ready          bool
	passed         bool // an init container has let others begin
	over           bool // it has ended, and isn't started again
	exit           int32
	restarts       int32
	last           *corev1.ContainerStateTerminated
	waits, message string
	process        *process
}

func newContainer(is *corev1.Container, init bool) *container {
	return &container{is: is, init: init, logs: newLogs()}
}

// lasts reports whether an init container goes on beside the others.
func (c *container) lasts() bool {
	return c.init && c.is.RestartPolicy != nil && *c.is.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func (c *container) kill() {
	if c.process != nil {
		c.process.signal(syscall.SIGKILL)
	}
}

// again reports whether one that has ended is started again.
func (p *pod) again(c *container) bool {
	switch {
	case c.lasts():
		return true
	case c.init:
		return c.exit != 0 && p.is.Spec.RestartPolicy != corev1.RestartPolicyNever
	case p.is.Spec.RestartPolicy == corev1.RestartPolicyNever:
		return false
	case p.is.Spec.RestartPolicy == corev1.RestartPolicyOnFailure:
		return c.exit != 0
	}
	return true
}

// Between starts of a container that ends pass from first to most, twice as long each time.
const first, most = 100 * time.Millisecond, 10 * time.Second

// keep runs a container until it is over or the pod ends. It closes begun once those after it may
// start.
func (p *pod) keep(c *container, begun chan<- struct{}) {
	pass := func() {
		p.mu.Lock()
		was := c.passed
		c.passed = true
		p.mu.Unlock()
		if !was {
			close(begun)
		}
	}
	for pause := first; ; pause = min(2*pause, most) {
		if p.ending.Err() != nil {
			return
		}
		p.once(c, func() {
			if c.lasts() || !c.init {
				pass()
			}
		})
		p.mu.Lock()
		over := !p.again(c)
		if over {
			c.over, c.ready = true, false
		}
		good := c.exit == 0
		p.mu.Unlock()
		p.changed()
		if over {
			if c.init && good {
				pass()
			}
			return
		}
		select {
		case <-p.ending.Done():
			return
		case <-time.After(pause):
		}
	}
}

// once runs a container to the end of its process; up is called once it has started.
func (p *pod) once(c *container, up func()) {
	p.mu.Lock()
	if !c.started.IsZero() {
		c.restarts++
		c.earlier, c.logs = c.logs, newLogs()
	}
	out := c.logs
	p.mu.Unlock()
	run, err := p.start(c.is, nil, nil, out.writer(), out.writer())
	p.mu.Lock()
	if err != nil {
		c.waits, c.message, c.exit = "CreateContainerError", err.Error(), 128
		p.mu.Unlock()
		out.end()
		p.changed()
		return
	}
	c.process, c.started, c.waits, c.message = run, time.Now(), "", ""
	p.mu.Unlock()
	p.hook(c, run)
	stop := p.probe(c, run, up)
	p.changed()
	select {
	case <-run.ended:
	case <-p.ending.Done():
		p.mu.Lock()
		grace := p.grace
		p.mu.Unlock()
		run.stop(grace)
	}
	stop()
	out.end()
	p.mu.Lock()
	c.exit, c.ready, c.up, c.process = run.code(), false, false, nil
	c.last = c.terminated()
	if c.exit != 0 {
		c.waits = "CrashLoopBackOff"
	}
	if !p.again(c) {
		c.waits = ""
	}
	p.mu.Unlock()
}

// hooked reports whether something runs in a container right after its start, for which those that
// come after it wait.
func (c *container) hooked() bool {
	return c.is.Lifecycle != nil && c.is.Lifecycle.PostStart != nil && c.is.Lifecycle.PostStart.Exec != nil
}

// hook runs what is to run right after the start, to its end. Where it fails a container is
// started again.
func (p *pod) hook(c *container, run *process) {
	if !c.hooked() {
		return
	}
	after, err := p.start(c.is, c.is.Lifecycle.PostStart.Exec.Command, nil, nil, nil)
	if err != nil {
		run.stop(0)
		return
	}
	select {
	case <-after.ended:
		if after.code() != 0 {
			run.stop(0)
		}
	case <-run.ended:
		after.stop(0)
	case <-p.ending.Done():
		after.stop(0)
	}
}

// process is one of a container.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// start starts a container's process, or another one with other arguments beside it.
func (p *pod) start(is *corev1.Container, args []string, in io.Reader, out, errs io.Writer) (*process, error) {
	image, ok := p.node.images[imageName(is.Image)]
	if !ok && len(is.Command) == 0 {
		return nil, fmt.Errorf("image %s isn't in the machine's table", is.Image)
	}
	env, err := p.environment(is)
	if err != nil {
		return nil, err
	}
	run := &Process{
		pod: p, Pod: p.is, Container: is,
		Env:   append(append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOSTNAME=" + p.host()}, image.Env...), env...),
		Files: map[string]string{}, Dir: filepath.Join(p.dir, "shared"), UID: p.user(is),
	}
	for path, from := range image.Files {
		run.Files[path] = from
	}
	if run.Args = args; args == nil {
		run.Args = commandOf(is, image, env)
		if image.Prepare != nil {
			if err := image.Prepare(run); err != nil {
				return nil, err
			}
		}
	}
	if len(run.Args) == 0 {
		return nil, errors.New("nothing says what it runs")
	}
	for _, name := range []string{"hostname", "hosts", "resolv.conf"} {
		run.Files["/etc/"+name] = filepath.Join(p.dir, name)
	}
	for _, m := range is.VolumeMounts {
		p.mu.Lock()
		from := p.volumes[m.Name]
		p.mu.Unlock()
		if m.SubPath != "" {
			from = filepath.Join(from, m.SubPath)
		}
		run.Files[m.MountPath] = from
	}
	return p.launch(run, is.WorkingDir, in, out, errs)
}

func (p *pod) launch(run *Process, dir string, in io.Reader, out, errs io.Writer) (*process, error) {
	text, err := json.Marshal(place{Host: p.host(), Root: filepath.Join(p.dir, "root"), Mounts: run.Files, Dir: dir, Args: run.Args, UID: run.UID})
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/proc/self/exe", insideArg, string(text))
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = run.Env, in, out, errs
	cmd.WaitDelay = time.Second // for what the process may have started
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true, Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS}
	err = net.ErrClosed
	p.ns.In(func() { err = cmd.Start() })
	if err != nil {
		return nil, err
	}
	r := &process{cmd: cmd, ended: make(chan struct{})}
	go func() { defer close(r.ended); _ = cmd.Wait() }()
	return r, nil
}

// signal sends a signal to the process, unless it has ended; SIGKILL to those that it has started,
// too.
func (r *process) signal(s syscall.Signal) {
	select {
	case <-r.ended:
	default:
		pid := r.cmd.Process.Pid
		if s == syscall.SIGKILL {
			pid = -pid
		}
		_ = syscall.Kill(pid, s)
	}
}

// stop asks it to end, and kills it when its time is over.
func (r *process) stop(grace time.Duration) {
	if grace > 0 {
		r.signal(syscall.SIGTERM)
		select {
		case <-r.ended:
		case <-time.After(grace):
		}
	}
	r.signal(syscall.SIGKILL)
	<-r.ended
}

// code is its exit code, as containers have it.
func (r *process) code() int32 {
	if s, ok := r.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return 128 + int32(s.Signal())
	}
	return int32(r.cmd.ProcessState.ExitCode())
}

func (p *pod) user(is *corev1.Container) uint32 {
	if s := is.SecurityContext; s != nil && s.RunAsUser != nil {
		return uint32(*s.RunAsUser)
	}
	if s := p.is.Spec.SecurityContext; s != nil && s.RunAsUser != nil {
		return uint32(*s.RunAsUser)
	}
	return 0
}

// imageName is an image's name without tag and digest.
func imageName(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if at := strings.LastIndexByte(image, ':'); at > strings.LastIndexByte(image, '/') {
		image = image[:at]
	}
	return image
}

// commandOf is what a container runs.
// Source:
// https://kubernetes.io/docs/tasks/inject-data-application/define-command-argument-container/
func commandOf(is *corev1.Container, image Image, env []string) (args []string) {
	command, rest := is.Command, is.Args
	if len(command) == 0 {
		command = image.Entrypoint
		if len(rest) == 0 {
			rest = image.Args
		}
	}
	for _, a := range append(append([]string(nil), command...), rest...) {
		args = append(args, expand(a, env))
	}
	return args
}

// Token is one of the pod's service account, for an audience.
func (p *Process) Token(audience string) (string, error) {
	return p.pod.token(&corev1.ServiceAccountTokenProjection{Audience: audience})
}
