package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	"github.com/coxswain-mesh/coxswain/core/host/sandbox"
	sdkprocess "github.com/coxswain-mesh/coxswain/sdk/process"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

const (
	// ending is how long a process whose session is over may take to end by itself.
	ending = 2 * time.Second
	// terminating is how long it may take after SIGTERM.
	terminating = 500 * time.Millisecond
)

// Process is a running plugin.
type Process struct {
	spec    Spec
	client  *plugin.Client
	child   *child
	dialer  *dialer
	carrier *sdkprocess.Carrier
	// sockets is the directory that go-plugin made for this process's socket.
	sockets string
	clean   sync.Once
	done    chan struct{}
}

var errTimeout = errors.New("timeout: no handshake")

// Start runs a plugin and shakes hands with it. If it fails nothing is left behind, and the error
// ends with the last lines of the plugin's standard error. ctx bounds the start alone; the process
// lives until Stop or its own end, which closes Done.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	if err := spec.complete(); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", spec.Name, err)
	}
	p := &Process{spec: spec, child: newChild(spec), done: make(chan struct{})}
	p.dialer = &dialer{child: p.child}
	p.client = plugin.NewClient(p.config())
	carrier, err := p.connect(ctx)
	if err != nil {
		return nil, p.startError(ctx, err)
	}
	p.carrier = carrier
	go p.watch()
	return p, nil
}

func (p *Process) config() *plugin.ClientConfig {
	return &plugin.ClientConfig{
		HandshakeConfig:  sdkprocess.Handshake(),
		Plugins:          sdkprocess.Set(),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS:         p.spec.TLS,
		SkipHostEnv:      true,
		StartTimeout:     p.spec.StartTimeout,
		Logger:           newHCLog(p.spec.Logger),
		GRPCDialOptions:  append(sdkprocess.DialOptions(), grpc.WithContextDialer(p.dialer.dial)),
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: p.spec.SocketDir},
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, sockets string) (runner.Runner, error) {
			p.sockets, p.dialer.dir = sockets, sockets
			if err := p.give(sockets); err != nil {
				return nil, err
			}
			return p.child, p.child.prepare(p.spec.Env, cmd.Env)
		},
	}
}

// give makes the directory of the process's socket its user's, and part of what its sandbox leaves
// it.
func (p *Process) give(sockets string) error {
	p.child.rules.Own = append(slices.Clone(p.child.rules.Own), sockets)
	if u := p.spec.User; u != nil {
		return os.Chown(sockets, int(u.UID), int(u.GID))
	}
	return nil
}

// Sandbox says what was taken from the process.
func (p *Process) Sandbox() sandbox.Report { return *p.child.report.Load() }

// connect starts the child and opens the session.
func (p *Process) connect(ctx context.Context) (*sdkprocess.Carrier, error) {
	stop := context.AfterFunc(ctx, func() { _ = p.child.Kill(ctx) })
	defer stop()
	address, err := p.client.Start()
	if err != nil {
		return nil, err
	}
	p.dialer.address = address
	// Go's runtime has raised its limit of files by now, as it does when a program starts; until
	// here the process was told nothing.
	if err := p.child.confine(); err != nil {
		return nil, fmt.Errorf("its limits: %w", err)
	}
	protocol, err := p.client.Client()
	if err != nil {
		return nil, err
	}
	session, err := protocol.Dispense(sdkprocess.Name)
	if err != nil {
		return nil, err
	}
	return session.(*sdkprocess.Carrier), ctx.Err()
}

// startError cleans up and says why the plugin did not start, in the words of what happened first.
func (p *Process) startError(ctx context.Context, err error) error {
	defer p.removeSockets()
	c := p.child
	if c.PID() == 0 && p.spec.User != nil && errors.Is(err, syscall.EPERM) {
		return fmt.Errorf("plugin %s: can't be started as user %d: the core must be root, or have CAP_SETUID and CAP_SETGID", p.spec.Name, p.spec.User.UID)
	}
	if c.PID() == 0 {
		return fmt.Errorf("plugin %s: can't be started: %w", p.spec.Name, err)
	}
	early := c.exitedWithin(ctx, terminating) && !c.wasKilled()
	_ = c.Kill(ctx)
	<-c.done
	early = early || !c.wasKilled() // it ended by itself, and only now is it known how
	p.client.Kill()
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case p.dialer.refusal() != nil:
		err = p.dialer.refusal()
	case strings.HasPrefix(err.Error(), "timeout"):
		err = session.Crossed("start", "%w within %s (limits.start)", errTimeout, p.spec.StartTimeout)
	case garbage(err):
		err = fmt.Errorf("its first line of standard output is no handshake: check that %s is a Coxswain plugin", p.spec.Path)
	case early:
		err = fmt.Errorf("ended (%s) before it shook hands: check that %s is a Coxswain plugin", c.state(), p.spec.Path)
	}
	return fmt.Errorf("plugin %s: %w%s", p.spec.Name, err, c.tail.quoted())
}

// garbage reports whether go-plugin read a line that is no handshake. It says the same, and more,
// where there was no line.
func garbage(err error) bool {
	return strings.HasPrefix(err.Error(), "Unrecognized remote plugin message") && !strings.Contains(err.Error(), "Failed to read any lines")
}

// watch cleans up when the process ends.
func (p *Process) watch() {
	<-p.child.done
	p.cleanUp()
	close(p.done)
}

// cleanUp closes connections and removes the socket's directory.
func (p *Process) cleanUp() {
	p.clean.Do(func() {
		_ = p.carrier.Close()
		p.client.Kill()
		p.removeSockets()
	})
}

// removeSockets removes what go-plugin leaves behind where a process did not start, or did not end
// by itself.
func (p *Process) removeSockets() {
	if p.sockets != "" {
		_ = os.RemoveAll(p.sockets)
	}
}

// Carrier carries the plugin's session; closing the session closes it.
func (p *Process) Carrier() session.Carrier { return p.carrier }

// PID returns the process's number.
func (p *Process) PID() int { return p.child.PID() }

// Done is closed when the process has ended and everything of it is cleaned up.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for Done and returns how the process ended: `exit status 1`, `signal: killed`.
func (p *Process) Wait() string {
	<-p.done
	return p.child.state()
}

// Stderr returns the last lines of the plugin's standard error.
func (p *Process) Stderr() []string { return p.child.tail.lines() }

// Stop ends the process and returns when it is gone. The caller has sent Drain before: the process
// has grace to finish. Then the session is cut, and what does not end after that is terminated,
// then killed, with all processes of its group.
func (p *Process) Stop(grace time.Duration) {
	p.within(grace, p.carrier.Done())
	_ = p.carrier.Close()
	go p.cleanUp() // Asks the plugin's server to stop.
	if p.within(ending, nil) {
		return
	}
	p.child.terminate()
	if p.within(terminating, nil) {
		return
	}
	_ = p.child.Kill(context.Background())
	<-p.done
}

// Kill ends the process, with all of its group, at once. It doesn't wait for it; Done tells.
func (p *Process) Kill() { _ = p.child.Kill(context.Background()) }

// within waits for the process's end; false if it took longer, or if something else came before.
func (p *Process) within(d time.Duration, or <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.done:
		return true
	case <-or:
	case <-t.C:
	}
	return false
}
