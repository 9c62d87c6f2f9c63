package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/seen"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
)

const listenerURL = "type.googleapis.com/envoy.config.listener.v3.Listener"

const ownersGateway = `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: gateway, namespace: demo}
spec:
  selector: {istio: ingressgateway}
  servers:
  - {hosts: ["*"], port: {name: http, number: 8080, protocol: HTTP}}
`

// takersGateway is first by name, and says that it is the oldest.
const takersGateway = `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: a, namespace: evil, creationTimestamp: "1970-01-01T00:00:00Z"}
spec:
  selector: {istio: ingressgateway}
  servers:
  - {hosts: ["*"], port: {name: tcp, number: 8080, protocol: TCP}}
  - {hosts: ["*"], port: {name: other, number: 8081, protocol: HTTP}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: a, namespace: evil}
spec:
  hosts: ["*"]
  gateways: [a]
  tcp: [{route: [{destination: {host: a.example, port: {number: 1}}}]}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: a, namespace: evil}
spec:
  hosts: [a.example]
  resolution: STATIC
  ports: [{number: 1, name: tcp, protocol: TCP}]
  endpoints: [{address: 127.0.0.1}]
`

// ordered is a control plane that reads the Gateways of two namespaces.
type ordered struct {
	t         *testing.T
	dir       string
	plane     *mesh.Plane
	bootstrap []byte
}

func newOrdered(t *testing.T, files map[string]string, args ...string) *ordered {
	t.Helper()
	o := &ordered{t: t, dir: t.TempDir()}
	for name, text := range files {
		place(t, filepath.Join(o.dir, name), text)
	}
	o.plane = mesh.Start(t, program, o.dir, args...)
	o.plane.Ready(t)
	o.bootstrap = o.plane.Bootstrap(t, "--type", "router", "--name", "gw", "--namespace", "demo", "--labels", "istio=ingressgateway")
	return o
}

// served is what a gateway's listeners are for, by port.
func (o *ordered) served() map[uint32]string {
	o.t.Helper()
	all := map[uint32]string{}
	for _, r := range o.plane.Fetch(o.t, o.bootstrap, listenerURL) {
		var l listenerv3.Listener
		if err := r.UnmarshalTo(&l); err != nil {
			o.t.Fatal(err)
		}
		what := "TCP"
		for _, c := range l.FilterChains {
			for _, f := range c.Filters {
				if f.Name == "envoy.filters.network.http_connection_manager" {
					what = "HTTP"
				}
			}
		}
		all[l.Address.GetSocketAddress().GetPortValue()] = what
	}
	return all
}

func (o *ordered) serves(what string, want map[uint32]string) {
	o.t.Helper()
	wait.For(o.t, what, func() error {
		if got := o.served(); fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("it serves %v, not %v", got, want)
		}
		return nil
	})
}

// reason waits until people are told, or no more, that it is not known which was first.
func (o *ordered) reason(told bool) {
	o.t.Helper()
	wait.For(o.t, "the reason", func() error {
		page, err := exec.CommandContext(o.t.Context(), program, "config", "--addr", o.plane.HTTP).CombinedOutput()
		if len(page) == 0 {
			return err // where something is wrong it has another exit code
		}
		if strings.Contains(string(page), "not known which was there first") != told {
			return fmt.Errorf("told: %v: %s", !told, page)
		}
		return nil
	})
}

// TestWhoIsServedStays: a namespace takes a port from nobody that has it, whatever its Gateway is
// called or says of its age; also after restarts, where there is a directory of state.
func TestWhoIsServedStays(t *testing.T) {
	state := t.TempDir()
	o := newOrdered(t, map[string]string{"demo.yaml": ownersGateway}, "--stateDir", state)
	o.serves("the owner's Gateway", map[uint32]string{8080: "HTTP"})
	place(t, filepath.Join(o.dir, "evil.yaml"), takersGateway)
	o.serves("both Gateways", map[uint32]string{8080: "HTTP", 8081: "HTTP"})
	o.reason(false)
	kept := func(row string) {
		t.Helper()
		wait.For(t, row+" is written down", func() error {
			text, err := os.ReadFile(filepath.Join(state, seen.FileName))
			if !strings.Contains(string(text), row) {
				return fmt.Errorf("%q, %v", text, err)
			}
			return nil
		})
	}
	kept(" networking.istio.io/Gateway evil/a\n")
	o.plane.Kill()
	o.plane = o.plane.Again(t)
	o.plane.Ready(t)
	o.serves("both Gateways, after it was killed", map[uint32]string{8080: "HTTP", 8081: "HTTP"})
	if code := o.plane.Stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	// What comes while nobody looks came later than what is known.
	place(t, filepath.Join(o.dir, "late.yaml"), strings.ReplaceAll(takersGateway, "name: a,", "name: 0,"))
	o.plane = o.plane.Again(t)
	o.plane.Ready(t)
	o.serves("the owner's Gateway, after a stop", map[uint32]string{8080: "HTTP", 8081: "HTTP"})
	o.reason(false)
}

// TestNobodyKnowsWhoWasFirst: without knowledge of an earlier run neither of two Gateways gets what
// both want, and people are told why; what one alone wants is served. A rank decides, and so does
// that the objects' own times count.
func TestNobodyKnowsWhoWasFirst(t *testing.T) {
	both := map[string]string{"demo.yaml": ownersGateway, "evil.yaml": takersGateway}
	t.Run("no order", func(t *testing.T) {
		o := newOrdered(t, both)
		o.serves("what is not contested", map[uint32]string{8081: "HTTP"})
		o.reason(true)
	})
	t.Run("one namespace", func(t *testing.T) {
		o := newOrdered(t, map[string]string{"demo.yaml": ownersGateway, "evil.yaml": strings.ReplaceAll(takersGateway, "evil", "demo")})
		o.serves("the first by name", map[uint32]string{8080: "TCP", 8081: "HTTP"})
		o.reason(false)
	})
	t.Run("their own times", func(t *testing.T) {
		o := newOrdered(t, both, "--trustCreationTimestamp")
		o.serves("the first by name", map[uint32]string{8080: "TCP", 8081: "HTTP"})
	})
	t.Run("ranked", func(t *testing.T) {
		set := filepath.Join(t.TempDir(), "plugins.yaml")
		text, err := os.ReadFile("../../plugins.yaml")
		if err != nil {
			t.Fatal(err)
		}
		write := func(rank string) {
			ranked := strings.Replace(string(text), "builtin: config/file\n", "builtin: config/file\n    config: {rank: ["+rank+"]}\n", 1)
			if ranked == string(text) {
				t.Fatal("no config/file in plugins.yaml")
			}
			place(t, set, ranked)
		}
		write("demo, other")
		o := newOrdered(t, both, "--plugins", set)
		o.serves("the first in rank", map[uint32]string{8080: "HTTP", 8081: "HTTP"})
		o.reason(false)
		write("evil")
		if err := syscall.Kill(o.plane.PID(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		o.serves("the other rank", map[uint32]string{8080: "TCP", 8081: "HTTP"})
	})
}
