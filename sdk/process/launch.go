//go:build !wasip1

package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
)

// Command is a program to start as a core does.
type Command struct {
	// Path of the program and its arguments, without its name; Dir is its working directory, Env
	// its whole environment but for the handshake's.
	Path string
	Args []string
	Dir  string
	Env  []string
	// TLS asks for go-plugin's AutoMTLS.
	TLS bool
	// Timeout of the handshake.
	Timeout time.Duration
	// Stderr gets what it writes to standard error.
	Stderr io.Writer
}

// Launched is a plugin that runs as a child process, for tests: package core/host/process is what a
// core has.
type Launched struct {
	*Carrier
	client   *plugin.Client
	lifeline *os.File
	sockets  string
	stop     sync.Once
}

// Launch starts a plugin and opens its session. Stop must be called in the end.
func Launch(c Command) (*Launched, error) {
	sockets, err := os.MkdirTemp("", "cx")
	if err != nil {
		return nil, err
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(sockets))
	}
	defer func() { _ = theirs.Close() }()
	l := &Launched{lifeline: ours, sockets: sockets}
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir, cmd.ExtraFiles = c.Dir, []*os.File{theirs}
	cmd.Env = append(append([]string{}, c.Env...), fmt.Sprintf("%s=%d", LifelineEnv, LifelineFD), fmt.Sprintf("%s=%d", CoreEnv, os.Getpid()),
		plugin.EnvUnixSocketDir+"="+sockets)
	l.client = plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: Handshake(), Plugins: Set(), Cmd: cmd, SkipHostEnv: true, AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS: c.TLS, StartTimeout: c.Timeout, Stderr: c.Stderr, Logger: hclog.NewNullLogger(), GRPCDialOptions: DialOptions(),
	})
	if err := l.open(); err != nil {
		l.Stop()
		return nil, err
	}
	return l, nil
}

func (l *Launched) open() error {
	protocol, err := l.client.Client()
	if err != nil {
		return err
	}
	carrier, err := protocol.Dispense(Name)
	if err != nil {
		return err
	}
	l.Carrier = carrier.(*Carrier)
	return nil
}

// Exited reports whether the process has ended.
func (l *Launched) Exited() bool { return l.client.Exited() }

// Abandon does what a core's death does: the session and the lifeline end.
func (l *Launched) Abandon() {
	_ = l.lifeline.Close()
	if l.Carrier != nil {
		_ = l.Carrier.Close()
	}
}

// Stop asks the process to end, kills it if it doesn't, and removes its socket.
func (l *Launched) Stop() {
	l.stop.Do(func() {
		l.client.Kill()
		l.Abandon()
		_ = os.RemoveAll(l.sockets)
	})
}
