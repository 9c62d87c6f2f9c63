package gatewayapi

import (
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// echo answers each datagram with a name and what came, and returns its port.
func echo(t *testing.T, name string) int {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { _ = c.Close(); <-done })
	go func() {
		defer close(done)
		b := make([]byte, 1<<16)
		for {
			n, from, err := c.ReadFrom(b)
			if err != nil {
				return
			}
			_, _ = c.WriteTo(append([]byte(name+":"), b[:n]...), from)
		}
	}()
	return c.LocalAddr().(*net.UDPAddr).Port
}

// sender is a client's socket.
type sender struct{ net.Conn }

func newSender(t *testing.T, port int) sender {
	t.Helper()
	c, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	return sender{c}
}

// patience is how long an answer may take.
const patience = 250 * time.Millisecond

// ask sends a datagram and returns who answers; empty: nobody.
func (s sender) ask(text []byte) string {
	_ = s.SetDeadline(time.Now().Add(patience))
	if _, err := s.Write(text); err != nil {
		return ""
	}
	b := make([]byte, 1<<16)
	n, err := s.Read(b)
	who, rest, ok := bytes.Cut(b[:n], []byte(":"))
	if err != nil || !ok || !bytes.Equal(rest, text) {
		return ""
	}
	return string(who)
}

// datagrams waits until new clients are answered by somebody; empty: by nobody.
func (f *front) datagrams(t *testing.T, port int, who string) {
	t.Helper()
	wait.For(t, fmt.Sprintf("datagrams at port %d are answered by %q", port, who), func() error {
		for range 3 {
			s := newSender(t, port)
			got := s.ask([]byte("who"))
			_ = s.Close()
			if got != who {
				return fmt.Errorf("%q answers", got)
			}
		}
		return nil
	})
}

// said checks what a command says.
func (f *front) said(t *testing.T, pattern string, args ...string) {
	t.Helper()
	out, err := exec.Command(plain, append(args, "--addr", f.plane.HTTP)...).CombinedOutput()
	if err != nil || !regexp.MustCompile(pattern).Match(out) {
		t.Errorf("coxswain %q says, instead of %q: %v\n%s", args, pattern, err, out)
	}
}

// echoService is a service that takes datagrams at its port 53; without endpoints: 0.
func echoService(namespace, name string, target int) string {
	endpoints := ""
	if target > 0 {
		endpoints = "  endpoints: [{address: 127.0.0.1}]\n"
	}
	return fmt.Sprintf(`---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  hosts: [%[1]s.%[2]s.svc.cluster.local]
  resolution: STATIC
  ports: [{name: dns, number: 53, protocol: UDP, targetPort: %[3]d}]
%[4]s`, name, namespace, max(target, 1), endpoints)
}

// udpRoute leads datagrams from the listener udp to backends.
func udpRoute(name string, backends ...string) string {
	return fmt.Sprintf(`---
apiVersion: gateway.networking.k8s.io/v1
kind: UDPRoute
metadata: {name: %s}
spec:
  parentRefs: [{name: edge, sectionName: udp}]
  rules: [{backendRefs: [%s]}]
`, name, strings.Join(backends, ", "))
}

// TestDatagrams: a UDPRoute leads datagrams through an Envoy to the endpoints of its backends'
// ports for UDP, whatever stands at the same numbers for TCP; and it ends with its grant, its
// endpoints and itself.
func TestDatagrams(t *testing.T) {
	f := newFront(t)
	ports := map[string]int{}
	for _, name := range []string{"one", "two", "three"} {
		ports[name] = echo(t, name)
	}
	services := func(one int) string {
		return echoService("default", "one", one) + echoService("default", "two", ports["two"]) + echoService("private", "three", ports["three"])
	}
	f.write(t, "services", services(ports["one"]))
	second := wait.Port(t)
	f.write(t, "gateway", fmt.Sprintf(`apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  gatewayClassName: istio
  listeners:
  - {name: http-%[1]d, port: %[1]d, protocol: HTTP}
  - {name: udp, port: %[1]d, protocol: UDP}
  - {name: more, port: %[2]d, protocol: UDP}
`, f.port, second))

	f.unharmed(t, func() {
		f.write(t, "route", udpRoute("dns", "{name: one, port: 53}"))
		f.datagrams(t, f.port, "one")
		f.datagrams(t, second, "")
		f.said(t, `UDPRoute +default/dns +ok +3 resources, 1 proxy`, "config")
		f.said(t, `UDPRoute +default/dns .*route.yaml:2`, "explain", "edge.default", "listener", fmt.Sprintf("udp_0.0.0.0_%d", f.port))
		s := newSender(t, f.port)
		defer func() { _ = s.Close() }()
		if long := bytes.Repeat([]byte("x"), 40_000); s.ask(long) != "one" {
			t.Error("a long datagram is not answered")
		}

		more := strings.ReplaceAll(udpRoute("more", "{name: two, port: 53}"), "sectionName: udp", "sectionName: more")
		f.write(t, "younger", udpRoute("younger", "{name: two, port: 53}")+more)
		f.datagrams(t, second, "two")
		f.datagrams(t, f.port, "one") // the older route's
		f.remove(t, "younger")
		f.datagrams(t, second, "")
	})

	f.unharmed(t, func() {
		f.write(t, "route", udpRoute("dns", "{name: one, port: 53, weight: 1}", "{name: two, port: 53, weight: 3}", "{name: missing, port: 53, weight: 0}"))
		shares := map[string]int{}
		wait.For(t, "both get datagrams, those of one client the same", func() error {
			clear(shares)
			moved := 0
			for range 200 {
				s := newSender(t, f.port)
				who := s.ask([]byte("1"))
				if s.ask([]byte("2")) != who {
					moved++
				}
				shares[who]++
				_ = s.Close()
			}
			if shares["one"] < 20 || shares["one"] > 80 || shares["one"]+shares["two"] != 200 || moved > 0 {
				return fmt.Errorf("%v, and %d clients have several", shares, moved)
			}
			return nil
		})
	})

	f.unharmed(t, func() {
		f.write(t, "route", udpRoute("dns", "{name: three, namespace: private, port: 53}"))
		f.datagrams(t, f.port, "")
		grant := strings.ReplaceAll(grantForRoutes, "HTTPRoute", "UDPRoute")
		f.write(t, "grant", grant)
		f.datagrams(t, f.port, "three")
		s := newSender(t, f.port)
		defer func() { _ = s.Close() }()
		if s.ask([]byte("x")) != "three" {
			t.Error("a granted backend doesn't answer")
		}
		f.remove(t, "grant")
		wait.For(t, "what is no longer granted ends for those who are there, too", func() error {
			if who := s.ask([]byte("y")); who != "" {
				return fmt.Errorf("%s answers", who)
			}
			return nil
		})
		f.datagrams(t, f.port, "")

		f.write(t, "route", udpRoute("dns", "{name: one, port: 53}"))
		f.datagrams(t, f.port, "one")
		f.write(t, "services", services(0))
		f.datagrams(t, f.port, "")
		f.write(t, "services", services(ports["one"]))
		f.datagrams(t, f.port, "one")
		f.write(t, "rule", `apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: one}
spec:
  host: one.default.svc.cluster.local
  trafficPolicy: {connectionPool: {tcp: {maxConnections: 1, idleTimeout: 1s}}}
`)
		wait.For(t, "one client at a time is answered, until it is idle", func() error {
			first, second := newSender(t, f.port), newSender(t, f.port)
			defer func() { _, _ = first.Close(), second.Close() }()
			if a, b := first.ask([]byte("1")), second.ask([]byte("2")); a != "one" || b != "" {
				return fmt.Errorf("%q and %q answer", a, b)
			}
			return nil
		})
		f.remove(t, "route")
		f.datagrams(t, f.port, "")
	})
}
