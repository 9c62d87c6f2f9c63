package gatewayapi

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// front is a Gateway from files, without a cluster, and an Envoy that serves it.
type front struct {
	dir   string // of its files
	port  int    // of its first listener
	plane *mesh.Plane
	envoy *envoy.Envoy
}

// steady is the host whose requests must not fail, whatever happens to others.
const steady = "steady.example.com"

func newFront(t *testing.T) *front {
	t.Helper()
	envoy.Binary(t) // or skip
	mesh.RuntimeDir(t)
	f := &front{dir: t.TempDir(), port: wait.Port(t)}
	for _, at := range []string{"default/shop", "private/bank"} {
		namespace, name, _ := strings.Cut(at, "/")
		f.write(t, "backend-"+name, fmt.Sprintf(`apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  hosts: [%[1]s.%[2]s.svc.cluster.local]
  resolution: STATIC
  ports: [{name: http, number: 80, protocol: HTTP, targetPort: %[3]d}]
  endpoints: [{address: 127.0.0.1}]
`, name, namespace, mesh.NewBackend(t, name).Port))
	}
	f.gateway(t)
	f.write(t, "steady", routeOf("default", "steady", steady, "shop"))
	f.plane = mesh.Start(t, plain, f.dir)
	f.plane.Ready(t)
	admin := wait.Address(t)
	f.envoy = envoy.Start(t, "edge", admin, f.plane.Bootstrap(t, "--type", "router", "--name", "edge", "--admin", admin,
		"--labels", "gateway.networking.k8s.io/gateway-name=edge"))
	f.envoy.Ready(t)
	f.answers(t, steady, "shop")
	return f
}

// write replaces a file at once.
func (f *front) write(t *testing.T, name, text string) {
	t.Helper()
	next := filepath.Join(t.TempDir(), name)
	err := os.WriteFile(next, []byte(text), 0o600)
	if err == nil {
		err = os.Rename(next, filepath.Join(f.dir, name+".yaml"))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (f *front) remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(f.dir, name+".yaml")); err != nil {
		t.Fatal(err)
	}
}

// gateway writes the Gateway, with listeners at more ports.
func (f *front) gateway(t *testing.T, more ...int) {
	t.Helper()
	text := `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  gatewayClassName: istio
  listeners:
`
	for _, port := range append([]int{f.port}, more...) {
		text += fmt.Sprintf("  - {name: http-%[1]d, port: %[1]d, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}\n", port)
	}
	f.write(t, "gateway", text)
}

// routeOf is a route from a host to a backend, NAME or NAMESPACE/NAME.
func routeOf(namespace, name, host, backend string) string {
	to := "{name: " + backend
	if in, of, ok := strings.Cut(backend, "/"); ok {
		to = "{name: " + of + ", namespace: " + in
	}
	return fmt.Sprintf(`---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: %s, namespace: %s}
spec:
  parentRefs: [{name: edge, namespace: default}]
  hostnames: [%s]
  rules: [{backendRefs: [%s, port: 80}]}]
`, name, namespace, host, to)
}

const grantForRoutes = `apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: routes, namespace: private}
spec: {from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: default}], to: [{group: "", kind: Service}]}
`

func (f *front) at(port int, host string) mesh.Target {
	return mesh.Target{Address: fmt.Sprintf("127.0.0.1:%d", port), Host: host, Path: "/"}
}

// answers waits until a request for a host is answered so: by a backend's name, or a status.
func (f *front) answers(t *testing.T, host, want string) {
	t.Helper()
	f.answersAt(t, f.port, host, want)
}

func (f *front) answersAt(t *testing.T, port int, host, want string) {
	t.Helper()
	wait.For(t, fmt.Sprintf("%s at port %d answers %s", host, port, want), func() error {
		code, body, err := f.at(port, host).Ask(t.Context())
		switch {
		case err != nil:
			return err
		case body != want && fmt.Sprint(code) != want:
			return fmt.Errorf("%d %q", code, body)
		}
		return nil
	})
}

// unharmed runs something while the host steady is asked for: none of its requests may fail.
func (f *front) unharmed(t *testing.T, during func()) {
	t.Helper()
	traffic := mesh.NewTraffic(t, f.at(f.port, steady))
	during()
	before := traffic.Asked()
	wait.For(t, "some more requests", func() error {
		if traffic.Asked() < before+20 {
			return errors.New("not yet")
		}
		return nil
	})
	if asked, failed := traffic.Stop(); len(failed) > 0 {
		t.Errorf("%d of %d requests failed:\n%s", len(failed), asked, strings.Join(failed[:min(len(failed), 10)], "\n"))
	}
	for _, line := range f.envoy.Unhappy(t) {
		t.Error(line)
	}
}

// TestGatewaysUnderTraffic: what others do to Gateway and routes harms no request of a route that
// stays as it is: the grant of its neighbour is withdrawn, listeners come and go, another namespace
// wants its host, and writes a thousand routes.
func TestGatewaysUnderTraffic(t *testing.T) {
	f := newFront(t)
	f.unharmed(t, func() {
		f.write(t, "bank", routeOf("default", "bank", "bank.example.com", "private/bank"))
		f.answers(t, "bank.example.com", "500") // nobody may lead there
		for range 3 {
			f.write(t, "grant", grantForRoutes)
			f.answers(t, "bank.example.com", "bank")
			f.remove(t, "grant")
			f.answers(t, "bank.example.com", "500")
		}
	})
	other := wait.Port(t)
	f.unharmed(t, func() {
		for range 3 {
			f.gateway(t, other)
			f.answersAt(t, other, steady, "shop")
			f.gateway(t)
			wait.For(t, "the listener is gone", func() error {
				if code, body, err := f.at(other, steady).Ask(t.Context()); err == nil {
					return fmt.Errorf("it answers %d %s", code, body)
				}
				return nil
			})
		}
	})
	f.unharmed(t, func() {
		// Of the first route for a host are its requests; who comes later says what is left.
		f.write(t, "clash", routeOf("private", "clash", steady, "bank")+routeOf("private", "more", "more.example.com", "bank"))
		f.answers(t, "more.example.com", "bank")
		f.answers(t, steady, "shop")
	})
	f.unharmed(t, func() {
		var many strings.Builder
		for i := range 1000 {
			many.WriteString(routeOf("private", fmt.Sprintf("r%d", i), fmt.Sprintf("r%d.example.com", i), "bank"))
		}
		f.write(t, "many", many.String())
		f.answers(t, "r999.example.com", "bank")
		f.answers(t, "r0.example.com", "bank")
	})
}

// TestPluginUnderTraffic: config/gatewayapi is replaced and killed, and no request fails.
func TestPluginUnderTraffic(t *testing.T) {
	f := newFront(t)
	f.unharmed(t, func() {
		if out, err := exec.Command(plain, "plugins", "restart", "gatewayapi").CombinedOutput(); err != nil {
			t.Fatalf("coxswain plugins restart: %v\n%s", err, out)
		}
		f.write(t, "after", routeOf("default", "after", "after.example.com", "shop"))
		f.answers(t, "after.example.com", "shop")
	})
	f.unharmed(t, func() {
		for i := range 3 {
			before := f.plane.Signal(t, "gatewayapi", syscall.SIGKILL)
			wait.For(t, "it runs again", func() error {
				if now := f.plane.Plugins(t)["gatewayapi"]; now.PID == 0 || now.PID == before.PID {
					return fmt.Errorf("%+v", now)
				}
				return nil
			})
			host := fmt.Sprintf("killed%d.example.com", i)
			f.write(t, "killed", routeOf("default", "killed", host, "shop"))
			f.answers(t, host, "shop")
		}
	})
}
