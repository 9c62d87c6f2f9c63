package process_test

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/host/process"
)

// TestSockets: a process has its sockets by the numbers that it is told, whatever else is open in
// it.
func TestSockets(t *testing.T) {
	l, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file, err := l.File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	program, err := os.Open(hello)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	want, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	for name, program := range map[string]*os.File{"by path": nil, "by file": program} {
		s := spec(t)
		s.Program, s.Files = program, []*os.File{os.Stdin}
		s.Sockets = []process.Socket{{Address: "udp://x", File: file}}
		p, _ := start(t, s)
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.PID()))
		if err != nil {
			t.Fatal(err)
		}
		_, number, _ := strings.Cut(string(environ), "COXSWAIN_LISTEN=udp://x=")
		number, _, _ = strings.Cut(number, "\x00")
		if got, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", p.PID(), number)); got != want {
			t.Errorf("%s: descriptor %q is %s, not %s: %v", name, number, got, want, err)
		}
	}
}
