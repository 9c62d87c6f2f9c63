package netns

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-mesh/coxswain/test/need"
)

// Pod is a network namespace with an address, in which several programs run and in which the test
// itself can listen and dial.
type Pod struct {
	Name, Address string

	// thread is where work is done: a thread of its own, which is in the namespace.
	thread chan func()
	// path of the namespace, for `ip link`.
	path string
}

// NewPod makes one. It has no link to any other yet. The test is skipped without the right to make
// it.
func NewPod(t testing.TB, name, address string) *Pod {
	t.Helper()
	if os.Getuid() != 0 || !users() {
		need.Missing(t, "pods need root and its users (without: unshare -Ur --map-auto)")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		need.Missing(t, "no program ip to make pods with: install iproute2")
	}
	p := &Pod{Name: name, Address: address, thread: make(chan func())}
	ready := make(chan error)
	ended := make(chan struct{})
	go func() { defer close(ended); p.work(ready) }()
	t.Cleanup(func() { close(p.thread); <-ended })
	if err := <-ready; err != nil {
		need.Missing(t, "no network namespaces here, which root has where the kernel allows them: %v", err)
	}
	p.Run(t, "ip", "addr", "add", address+"/32", "dev", "lo")
	return p
}

// users reports whether there are others than root: a namespace of users may have root alone.
func users() bool {
	b, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return false
	}
	var inside, outside, count int
	_, err = fmt.Sscan(string(b), &inside, &outside, &count)
	return err == nil && count > 1 || strings.Count(string(b), "\n") > 1
}

// work never gives its thread back: it ends with the namespace.
func (p *Pod) work(ready chan<- error) {
	runtime.LockOSThread()
	p.path = fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid())
	err := unix.Unshare(unix.CLONE_NEWNET)
	if err == nil {
		err = loopback()
	}
	ready <- err
	for f := range p.thread {
		f()
	}
}

// In does something in the pod.
func (p *Pod) In(f func()) {
	done := make(chan struct{})
	p.thread <- func() { defer close(done); f() }
	<-done
}

// Run runs a program there to its end. The test fails if it fails.
func (p *Pod) Run(t testing.TB, program string, args ...string) {
	t.Helper()
	p.Finish(t, exec.Command(program, args...))
}

// Finish runs a command there to its end. The test fails if it fails.
func (p *Pod) Finish(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	var out []byte
	var err error
	p.In(func() { out, err = cmd.CombinedOutput() })
	if err != nil {
		t.Fatalf("%s: %s: %v: %s", p.Name, cmd, err, out)
	}
}

// Start starts a program there, as a user. It ends with the pod.
func (p *Pod) Start(cmd *exec.Cmd, uid uint32) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	var err error
	p.In(func() { err = cmd.Start() })
	return err
}

// Listen listens there.
func (p *Pod) Listen(t testing.TB, address string) net.Listener {
	t.Helper()
	var l net.Listener
	var err error
	p.In(func() { l, err = net.Listen("tcp", address) })
	if err != nil {
		t.Fatalf("%s: %v", p.Name, err)
	}
	return l
}

// Dial dials an IP address from there.
func (p *Pod) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var c net.Conn
	var err error
	p.In(func() { c, err = new(net.Dialer).DialContext(ctx, network, address) })
	return c, err
}

// Link joins two pods, so that each reaches the other's address.
func Link(t testing.TB, a, b *Pod) {
	t.Helper()
	a.Run(t, "ip", "link", "add", "name", b.Name, "type", "veth", "peer", "name", a.Name, "netns", b.path)
	a.reaches(t, b)
	b.reaches(t, a)
}

// reaches leads to another pod. The device has the pod's address, too: what comes in and is
// redirected goes to that of its device.
func (p *Pod) reaches(t testing.TB, other *Pod) {
	t.Helper()
	p.Run(t, "ip", "addr", "add", p.Address+"/32", "dev", other.Name)
	p.Run(t, "ip", "link", "set", "dev", other.Name, "up")
	p.Run(t, "ip", "route", "add", other.Address+"/32", "dev", other.Name, "src", p.Address)
}
