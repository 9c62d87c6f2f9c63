package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// world is a control plane with two Envoys, an ingress gateway and a client's sidecar.
type world struct {
	*configuration
	plane           *mesh.Plane
	gateway, client *envoy.Envoy
	// tokens are what proxies show who they are by; nil: they are in plain text.
	tokens *issuer
}

// newWorld starts it with two backends of v1 and one of v2.
func newWorld(t *testing.T, protocol string) *world {
	t.Helper()
	return newWorldOn(t, mesh.Start, protocol)
}

// starter starts a control plane as mesh.Start does.
type starter func(t testing.TB, binary, dir string, args ...string) *mesh.Plane

// newWorldOn starts one whose control plane is started so.
func newWorldOn(t *testing.T, start starter, protocol string) *world {
	t.Helper()
	return newWorldOf(t, start, protocol, nil)
}

// newVerifiedWorld starts one whose proxies show who they are: each is an account of its name.
func newVerifiedWorld(t *testing.T, protocol string) *world {
	t.Helper()
	return newWorldOf(t, mesh.Start, protocol, newIssuer(t))
}

func newWorldOf(t *testing.T, start starter, protocol string, tokens *issuer) *world {
	t.Helper()
	envoy.Binary(t) // or skip
	c := &configuration{
		dir: t.TempDir(), WebPort: wait.Port(t), ShopPort: wait.Port(t), GatewayPort: wait.Port(t),
		V1:      []*mesh.Backend{mesh.NewBackend(t, "v1-a"), mesh.NewBackend(t, "v1-b")},
		V2:      []*mesh.Backend{mesh.NewBackend(t, "v2-a")},
		Weight1: 75, Weight2: 25, Old: true,
	}
	c.write(t, "gateway.yaml", "web.yaml", "routes.yaml")
	w := &world{configuration: c, tokens: tokens}
	if tokens == nil {
		w.plane = start(t, program, c.dir)
	} else {
		w.plane = start(t, program, c.dir, "--authPlaintext", "--jwtRule", tokens.rule())
	}
	w.plane.Ready(t)
	w.gateway = w.proxy(t, "gateway", protocol, "--type", "router", "--ip", "127.0.0.21", "--labels", "istio=ingressgateway")
	w.client = w.proxy(t, "client", protocol, "--type", "sidecar", "--ip", "127.0.0.20", "--labels", "app=client", "--interception", "NONE")
	for _, e := range w.envoys() {
		t.Logf("%s, %s: ready after %v", e.Name, protocol, e.Ready(t))
	}
	return w
}

func (w *world) proxy(t *testing.T, name, protocol string, args ...string) *envoy.Envoy {
	t.Helper()
	at := wait.Address(t)
	if w.tokens != nil {
		args = append(args, "--header", "authorization: Bearer "+w.tokens.token("sub", "system:serviceaccount:test:"+name))
	}
	args = append([]string{"--name", name, "--namespace", "test", "--protocol", protocol, "--admin", at}, args...)
	return envoy.Start(t, name, at, w.plane.Bootstrap(t, args...))
}

func (w *world) envoys() []*envoy.Envoy { return []*envoy.Envoy{w.gateway, w.client} }

// web and shop are the services as the gateway and the client's sidecar show them.
func (w *world) web(path string) []mesh.Target {
	return []mesh.Target{
		{Address: local(w.GatewayPort), Host: "web.example", Path: path},
		{Address: local(w.WebPort), Host: "web.example", Path: path},
	}
}

func (w *world) shop() []mesh.Target {
	return []mesh.Target{
		{Address: local(w.GatewayPort), Host: "shop.example", Path: "/"},
		{Address: local(w.ShopPort), Host: "shop.example", Path: "/"},
	}
}

func local(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// traffic starts clients of the route that stays.
func (w *world) traffic(t *testing.T) []*mesh.Traffic {
	t.Helper()
	var all []*mesh.Traffic
	for _, target := range w.web("/api") {
		all = append(all, mesh.NewTraffic(t, target))
	}
	return all
}

// finish stops the clients: none of their requests may have failed, and the Envoys must have got
// all they asked for and refused nothing.
func (w *world) finish(t *testing.T, all []*mesh.Traffic) {
	t.Helper()
	for _, f := range all {
		asked, failed := f.Stop()
		t.Logf("%d requests, %d failed", asked, len(failed))
		if asked == 0 {
			t.Error("no traffic")
		}
		for _, line := range failed[:min(5, len(failed))] {
			t.Error(line)
		}
	}
	w.happy(t)
}

func (w *world) happy(t *testing.T) {
	t.Helper()
	for _, e := range w.envoys() {
		for _, line := range e.Unhappy(t) {
			t.Error(line)
		}
	}
}

// only waits until a target's answers are those wanted, each of them and no other.
func only(t *testing.T, target mesh.Target, want ...string) {
	t.Helper()
	wait.For(t, fmt.Sprintf("%s is answered by %v alone", target, want), func() error {
		got := target.Shares(context.Background(), 20*len(want))
		for _, name := range want {
			if got[name] == 0 {
				return fmt.Errorf("got %v", got)
			}
		}
		if len(got) != len(want) {
			return fmt.Errorf("got %v", got)
		}
		return nil
	})
}
