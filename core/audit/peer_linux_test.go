package audit

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPeer: the other end of a socket is the process that the kernel says, with the login that it
// was started under, if it was.
func TestPeer(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	here, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = here.Close() }()
	read := func(name string) string {
		b, _ := os.ReadFile("/proc/self/" + name)
		return strings.TrimSpace(string(b))
	}
	w := Peer(here)
	if w.By != ByCommand || w.UID == nil || *w.UID != os.Getuid() || w.PID != os.Getpid() || w.Command != read("comm") {
		t.Errorf("%+v", w)
	}
	const nobody = "4294967295" // proc_pid_loginuid(5): nobody has logged in
	if id := read("loginuid"); (w.Login != "") != (id != "" && id != nobody) {
		t.Errorf("login %q, where the kernel has %q", w.Login, id)
	}
}
