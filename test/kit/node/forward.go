package node

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// forwards are what a machine has between Services and pods.
type forwards struct {
	ctx    context.Context
	server string // of the API server, HOST:PORT
	ends   sync.WaitGroup
	// open are listeners by the ClusterIP and port that they stand for, next which of a Service's
	// pods the next connection goes to. Only forward uses open, next is for mu.
	open map[netip.AddrPort]net.Listener
	mu   sync.Mutex
	next int
}

// Forward plays kube-proxy, for TCP: a connection to a port of a Service's ClusterIP (of range,
// which is the API server's --service-cluster-ip-range) goes to one of its ready pods, each time
// another one, and that to the Service kubernetes goes to the API server at server. Pods see the
// machine's address as that of their peer.
func (n *Node) Forward(t testing.TB, clusterIPs, server string) {
	t.Helper()
	if out, err := exec.Command("ip", "route", "replace", "local", clusterIPs, "dev", "lo").CombinedOutput(); err != nil {
		t.Fatalf("ip route: %v: %s", err, out)
	}
	ctx, stop := context.WithCancel(context.Background())
	f := &forwards{ctx: ctx, server: server, open: map[netip.AddrPort]net.Listener{}}
	n.mu.Lock()
	n.forwards = f
	n.mu.Unlock()
	n.changed()
	t.Cleanup(func() {
		n.mu.Lock()
		n.forwards = nil
		n.mu.Unlock()
		stop()
		f.ends.Wait()
	})
}

// forward opens listeners for the ports of Services that are there, and closes the others.
func (n *Node) forward() {
	n.mu.Lock()
	f := n.forwards
	n.mu.Unlock()
	if f == nil {
		return
	}
	wanted := map[netip.AddrPort]func() string{}
	for _, o := range n.services.List() {
		s := o.(*corev1.Service)
		ip, err := netip.ParseAddr(s.Spec.ClusterIP)
		if err != nil {
			continue // it is headless
		}
		for _, p := range s.Spec.Ports {
			if p.Protocol == corev1.ProtocolTCP {
				key, port := s.Namespace+"/"+s.Name, p.Port
				wanted[netip.AddrPortFrom(ip, uint16(p.Port))] = func() string { return n.to(f, key, port) }
			}
		}
	}
	for at, l := range f.open {
		if wanted[at] == nil {
			_ = l.Close()
			delete(f.open, at)
		}
	}
	for at, to := range wanted {
		if f.open[at] != nil {
			continue
		}
		l, err := net.Listen("tcp", at.String())
		if err != nil {
			n.log("%s can't be listened on: %v", at, err)
			continue
		}
		f.open[at] = l
		context.AfterFunc(f.ctx, func() { _ = l.Close() })
		f.ends.Go(func() { f.accept(l, to) })
	}
}

// to is where the next connection to a port of a Service goes; empty: nobody is there.
func (n *Node) to(f *forwards, service string, port int32) string {
	if service == "default/kubernetes" {
		return f.server
	}
	o, there, _ := n.services.GetByKey(service)
	if !there || len(o.(*corev1.Service).Spec.Selector) == 0 {
		return ""
	}
	s := o.(*corev1.Service)
	at := slices.IndexFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port && p.Protocol == corev1.ProtocolTCP })
	pods := n.behind(s)
	if at < 0 || len(pods) == 0 {
		return ""
	}
	f.mu.Lock()
	f.next++
	p := pods[f.next%len(pods)]
	f.mu.Unlock()
	target := s.Spec.Ports[at].TargetPort
	if target.Type == intstr.Int && target.IntVal == 0 {
		target = intstr.FromInt32(port)
	}
	for _, c := range p.containers {
		if number := portOf(c.is, target); target.Type == intstr.Int || number != target.StrVal {
			return net.JoinHostPort(p.ip.String(), number)
		}
	}
	return ""
}

func (f *forwards) accept(l net.Listener, to func() string) {
	for {
		from, err := l.Accept()
		switch {
		case err == nil:
			f.ends.Go(func() { f.carry(from.(*net.TCPConn), to()) })
		case errors.Is(err, net.ErrClosed):
			return
		}
	}
}

// carry carries a connection on to an address. Where nobody is there it is refused.
func (f *forwards) carry(from *net.TCPConn, address string) {
	defer func() { _ = from.Close() }()
	conn, err := new(net.Dialer).DialContext(f.ctx, "tcp", address)
	if err != nil {
		_ = from.SetLinger(0) // it is reset
		return
	}
	to := conn.(*net.TCPConn)
	defer context.AfterFunc(f.ctx, func() { _ = from.Close(); _ = to.Close() })()
	defer func() { _ = to.Close() }()
	var back sync.WaitGroup
	back.Go(func() { splice(from, to) })
	splice(to, from)
	back.Wait()
}

// splice writes to one what the other says, and its end.
func splice(to, from *net.TCPConn) {
	if _, err := io.Copy(to, from); err != nil {
		_ = to.SetLinger(0)
		_ = to.Close()
		_ = from.Close()
		return
	}
	_ = to.CloseWrite()
}
