package host

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/coxswain-mesh/coxswain/core/host/process"
	"github.com/coxswain-mesh/coxswain/core/host/sandbox"
	"github.com/coxswain-mesh/coxswain/sdk/session"
)

// Starter starts plugin processes.
type Starter interface {
	// Start returns when the process is up and its session can begin, or with the reason why not,
	// the process's last lines of standard error in it where there is a process. ctx concerns the
	// start alone.
	Start(ctx context.Context, l Launch) (Running, error)
}

// Launch is what to start.
type Launch struct {
	// Name of the entry.
	Name string
	// Path of the program and its arguments, without the program's name. With Program it is that
	// open file which is executed. Files are open in the process, too, under the names that
	// process.Inherited gives them.
	Path    string
	Program *os.File
	Files   []*os.File
	// Sockets are those that the core listens on for it.
	Sockets []process.Socket
	Args    []string
	// Env is the whole environment but for what the handshake adds, as NAME=value.
	Env []string
	// Dir is the working directory.
	Dir string
	// SocketDir is the core's private directory, in which the process's socket gets a directory of
	// its own.
	SocketDir string
	// TLS asks for mutual TLS with keys made for this start.
	TLS bool
	// OpenFiles is how many files it may have open; 0: as many as the core.
	OpenFiles uint64
	// Group, if set, is the control group in which it begins.
	Group *os.File
	// User, if set, is who it runs as; Sandbox what is taken from it.
	User    *process.User
	Sandbox sandbox.Rules
	// Timeout of the start.
	Timeout time.Duration
	// Log takes the lines that the process writes to standard error.
	Log *slog.Logger
}

// Running is a process that has been started.
type Running interface {
	Carrier() session.Carrier
	PID() int
	// Stderr returns the last lines of standard error.
	Stderr() []string
	// Stop ends the process: asks it to, kills it after grace (at once for 0), and returns when it
	// is gone.
	Stop(grace time.Duration)
	// Kill ends the process at once and doesn't wait for it.
	Kill()
	// Done is closed when the process is gone; Wait then says how it ended: `exit status 1`,
	// `signal: killed`.
	Done() <-chan struct{}
	Wait() string
}
