// Package netns runs programs of tests in a network namespace of their own, which has no route to
// anywhere: what they dial stays there, and what they listen on is theirs alone. Files and Unix
// sockets are shared with the test.
package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

// inside is the first argument of a test binary that is to become another program, once its
// namespace is ready.
const inside = "in-a-network-namespace"

// Main comes first in TestMain of a package that uses Command. In a process that Command started,
// it doesn't return.
func Main() {
	if len(os.Args) < 3 || os.Args[1] != inside {
		return
	}
	if err := become(os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Command is a program with arguments, to be started in a new namespace. The test is skipped where
// such namespaces are forbidden.
func Command(t testing.TB, program string, args ...string) *exec.Cmd {
	t.Helper()
	possible(t)
	return command(append([]string{program}, args...))
}

// within is the variable of the environment of a test binary that runs in a namespace of its own.
const within = "COXSWAIN_TEST_WITHIN"

// Within runs this test binary once more, in a namespace of its own, and ends with its exit code;
// there, and where namespaces are forbidden, it returns. It comes after Main in TestMain of a
// package whose tests and servers are to share a namespace.
func Within() {
	if os.Getenv(within) != "" {
		return
	}
	if _, err := command([]string{"/bin/true"}).CombinedOutput(); err != nil {
		return
	}
	runtime.LockOSThread() // of the main thread, which ends with the process: what it starts is killed then
	cmd := command(append([]string{"/proc/self/exe"}, os.Args[1:]...))
	cmd.Env = append(os.Environ(), within+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var ended *exec.ExitError
	switch {
	case err == nil:
		os.Exit(0)
	case errors.As(err, &ended) && ended.ExitCode() > 0:
		os.Exit(ended.ExitCode())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// Apart reports whether Within has put this process into a namespace of its own.
func Apart() bool { return os.Getenv(within) != "" }

func command(args []string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", append([]string{inside}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWNET}
	if uid := os.Getuid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	return cmd
}

func possible(t testing.TB) {
	t.Helper()
	if out, err := command([]string{"/bin/true"}).CombinedOutput(); err != nil {
		need.Missing(t, "no network namespaces here: run as root, or allow users namespaces (unshare -Urn): %v %s", err, out)
	}
}

// become readies the namespace and runs a program in place of this one.
func become(args []string) error {
	if err := loopback(); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	// Proxies bind to addresses of their pods and services.
	for _, family := range []string{"ipv4", "ipv6"} {
		if err := os.WriteFile("/proc/sys/net/"+family+"/ip_nonlocal_bind", []byte("1"), 0); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return syscall.Exec(args[0], args, os.Environ())
}

// loopback sets the interface lo up.
func loopback() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(s) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo)
}
