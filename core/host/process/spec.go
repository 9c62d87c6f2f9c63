// Package process runs a plugin as a child process under go-plugin's handshake, and sees that it
// never outlives the core.
package process

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/coxswain-mesh/coxswain/core/host/family"
	"github.com/coxswain-mesh/coxswain/core/host/sandbox"
)

// Spec says what to run and how.
type Spec struct {
	// Name is the plugin's name, for errors and logs.
	Name string
	// Path is the executable, Args its arguments (without the name), Dir its working directory.
	// With Program it is that open file which is executed, whatever is at Path by now.
	Path    string
	Program *os.File
	// Files are open in the process, too, as Inherited names them.
	Files []*os.File
	// Sockets are open in it as sdk/listen finds them.
	Sockets []Socket
	Args    []string
	Dir     string
	// Env is the whole environment, but for what the handshake needs.
	Env []string
	// SocketDir is a private directory (mode 0700) in which the plugin's socket is made, in a
	// directory of its own.
	SocketDir string
	// TLS makes both sides authenticate by certificates made for this one run (AutoMTLS).
	TLS bool
	// StartTimeout is how long the handshake may take; 10 s if it is 0.
	StartTimeout time.Duration
	// OpenFiles is how many files it may have open (Linux); 0: as many as the core.
	OpenFiles uint64
	// Group, if set, is the directory of a control group, in which the process begins (Linux).
	Group *os.File
	// User, if set, is who it runs as.
	User *User
	// Sandbox is what is taken from it.
	Sandbox sandbox.Rules
	// Family, if set, ends with the process all that it started.
	Family *family.Family
	// Stderr, if set, gets the plugin's standard error, and standard output after the handshake,
	// line by line, as far as it isn't a flood: LeftOut, if set, is told from time to time how much
	// was left out.
	Stderr  io.Writer
	LeftOut func(lines, bytes int)
	// Logger gets go-plugin's lines, at level debug; none if it is nil.
	Logger *slog.Logger
}

// Socket is one that a process is given.
type Socket struct {
	// Address is what it is called, such as udp://127.0.0.1:53.
	Address string
	File    *os.File
}

// User is who a process runs as.
type User struct {
	UID, GID uint32
	// Groups are those that it is in besides GID.
	Groups []uint32
}

// maxSocketDir leaves room for what go-plugin adds; a socket's path has at most 107 bytes.
const maxSocketDir = 107 - len("/plugin-dir0123456789/plugin0123456789")

func (s *Spec) complete() error {
	switch {
	case s.Path == "":
		return errors.New("no executable was named")
	case s.SocketDir == "":
		return errors.New("no directory for sockets was named")
	case len(s.SocketDir) > maxSocketDir:
		return fmt.Errorf("the directory for sockets %q is longer than %d bytes, which makes a socket's path too long: choose a shorter one",
			s.SocketDir, maxSocketDir)
	}
	if s.StartTimeout == 0 {
		s.StartTimeout = 10 * time.Second
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}
