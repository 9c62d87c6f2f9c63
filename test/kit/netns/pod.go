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

	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

// Pod is a network namespace with an address, in which several programs run and in which the test
// itself can listen and dial.
type Pod struct {
	Name, Address string

	// thread is where work is done: a thread of its own, which is in the namespace.
	thread      chan func()
	quit, ended chan struct{}
	// path of the namespace, for `ip link`.
	path string
}

// NewPod makes one. It has no link to any other yet. The test is skipped without the right to make
// it.
func NewPod(t testing.TB, name, address string) *Pod {
	t.Helper()
	Rights(t)
	p, err := New(name, address)
	if err != nil {
		need.Missing(t, "no network namespaces here, which root has where the kernel allows them: %v", err)
	}
	t.Cleanup(p.Close)
	p.Run(t, "ip", "addr", "add", address+"/32", "dev", "lo")
	return p
}

// Rights skips a test that may not make pods.
func Rights(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 || !users() {
		need.Missing(t, "pods need root and its users (without: unshare -Ur --map-auto)")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		need.Missing(t, "no program ip to make pods with: install iproute2")
	}
}

// New makes a pod that nobody ends but Close.
func New(name, address string) (*Pod, error) {
	p := &Pod{Name: name, Address: address, thread: make(chan func()), quit: make(chan struct{}), ended: make(chan struct{})}
	ready := make(chan error)
	go func() { defer close(p.ended); p.work(ready) }()
	if err := <-ready; err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Close ends it, and all programs that Start started there.
func (p *Pod) Close() { close(p.quit); <-p.ended }

// Attach joins it to a bridge of the caller's own namespace, by the device eth0 that has its
// address in a network of a number of bits. What is not in that network goes by a gateway.
func (p *Pod) Attach(bridge string, bits int, gateway string) error {
	device := "p-" + strings.ReplaceAll(strings.TrimPrefix(p.Address, "10."), ".", "-")
	// The kernel takes apart a namespace that has ended a moment later: the device of the pod that
	// had the address before may be there still.
	_ = exec.Command("ip", "link", "del", "dev", device).Run()
	for _, args := range [][]string{
		{"link", "add", "name", device, "type", "veth", "peer", "name", "eth0", "netns", p.path},
		{"link", "set", "dev", device, "master", bridge, "up"},
	} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
		}
	}
	for _, args := range [][]string{
		{"addr", "add", fmt.Sprintf("%s/%d", p.Address, bits), "dev", "eth0"},
		{"link", "set", "dev", "eth0", "up"},
		{"route", "add", "default", "via", gateway},
	} {
		if err := p.IP(args...); err != nil {
			return err
		}
	}
	return nil
}

// IP runs `ip` there.
func (p *Pod) IP(args ...string) error {
	var out []byte
	err := net.ErrClosed
	p.In(func() { out, err = exec.Command("ip", args...).CombinedOutput() })
	if err != nil {
		return fmt.Errorf("%s: ip %s: %w: %s", p.Name, strings.Join(args, " "), err, out)
	}
	return nil
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
	for {
		select {
		case f := <-p.thread:
			f()
		case <-p.quit:
			return
		}
	}
}

// In does something in the pod, and reports whether it has: not after Close.
func (p *Pod) In(f func()) bool {
	done := make(chan struct{})
	select {
	case p.thread <- func() { defer close(done); f() }:
		<-done
		return true
	case <-p.ended:
		return false
	}
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
	err := net.ErrClosed
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
	err := net.ErrClosed
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
