package sidecars

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk/simulator"
	"github.com/coxswain-mesh/coxswain/test/kit/authority"
	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/netns"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// Addresses of the service web in testdata/mesh.yaml.
const (
	web        = "web.shop.svc.cluster.local"
	webAddress = "10.96.0.10"
)

//go:embed testdata/mesh.yaml
var meshYAML string

// world is a control plane and three pods: client and server have sidecars, stranger has none.
type world struct {
	config                   string
	plane                    *mesh.Plane
	client, server, stranger *netns.Pod
	sidecar                  map[*netns.Pod]*envoy.Envoy
	bootstrap                map[*netns.Pod][]byte
	walked                   map[*netns.Pod]*simulator.Config
	certificates             map[*netns.Pod]string
	dir, socket              string
}

// settings of a world.
type settings struct {
	protocol string
	// authority of certificates that sidecars have; nil: none. sds: they come by SDS from files.
	authority *authority.Authority
	sds       bool
	// mesh is a file with the mesh's settings; empty: none.
	mesh string
}

func newWorld(t *testing.T, s settings) *world {
	t.Helper()
	envoy.Binary(t) // or skip
	iptables(t)     // or skip
	w := &world{
		config:   t.TempDir(),
		client:   netns.NewPod(t, "client", "10.244.0.1"),
		server:   netns.NewPod(t, "server", "10.244.0.2"),
		stranger: netns.NewPod(t, "stranger", "10.244.0.3"),
		sidecar:  map[*netns.Pod]*envoy.Envoy{}, bootstrap: map[*netns.Pod][]byte{}, walked: map[*netns.Pod]*simulator.Config{}, certificates: map[*netns.Pod]string{},
		dir: folder(t),
	}
	netns.Link(t, w.client, w.server)
	netns.Link(t, w.stranger, w.server)
	intercept(t, w.client, w.server)
	intercept(t, w.server, w.client)
	serveHTTP(t, w.server, "8080")
	serveTCP(t, w.server, "9000")
	serveTCP(t, w.server, "9999")
	w.write(t, "mesh.yaml", meshYAML)
	var args []string
	if s.mesh != "" {
		args = append(args, "--meshConfig", s.mesh)
	}
	w.plane = mesh.Start(t, program, w.config, args...)
	w.plane.Ready(t)
	w.socket = w.plane.Socket(t, filepath.Join(w.dir, "xds"))
	w.start(t, w.client, "client", w.socket, s)
	w.start(t, w.server, "web", w.socket, s)
	return w
}

// folder is one that all may write to. Its name is short, because sockets stand in it.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sidecars-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// start starts a pod's sidecar, whose workload runs as a service account.
func (w *world) start(t *testing.T, p *netns.Pod, account, socket string, s settings) {
	t.Helper()
	admin := "unix:" + filepath.Join(w.dir, p.Name)
	args := []string{
		"--xds", socket, "--admin", admin, "--protocol", s.protocol, "--type", "sidecar", "--name", p.Name, "--namespace", "shop", "--ip", p.Address,
		"--labels", "app=" + account, "--interception", "REDIRECT",
	}
	if s.authority != nil {
		w.certificates[p] = folder(t)
		s.authority.Issue(t, w.certificates[p], spiffe(account))
		args = append(args, "--certs", w.certificates[p])
	}
	if s.sds {
		args = append(args, "--sds", folder(t))
	}
	w.bootstrap[p] = w.plane.Bootstrap(t, args...)
	e := envoy.InPod(t, p, proxyUser, admin, w.bootstrap[p])
	e.Ready(t)
	w.sidecar[p] = e
}

// write writes a file of configuration.
func (w *world) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(w.config, name)
	next := filepath.Join(t.TempDir(), name)
	err := os.WriteFile(next, []byte(text), 0o600)
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// happy fails the test where an Envoy refused something.
func (w *world) happy(t *testing.T) {
	t.Helper()
	for _, e := range w.sidecar {
		for _, line := range e.Unhappy(t) {
			t.Error(line)
		}
	}
}

// through waits until requests are answered, and returns what the server saw. They must have come
// through its sidecar.
func through(t *testing.T, what string, ask func() (seen, error)) seen {
	t.Helper()
	var s seen
	wait.For(t, what+" is answered", func() (err error) { s, err = ask(); return err })
	if !strings.HasPrefix(s.Remote, "127.0.0.6:") {
		t.Errorf("%s: the workload sees %s, not its sidecar", what, s.Remote)
	}
	return s
}

// refused waits until requests aren't answered.
func refused(t *testing.T, what string, ask func() (seen, error)) {
	t.Helper()
	wait.For(t, what+" is refused", func() error {
		s, err := ask()
		if err == nil {
			return fmt.Errorf("it is answered: %+v", s)
		}
		return nil
	})
}

// count sums up statistics of a pod's sidecar.
func (w *world) count(t *testing.T, p *netns.Pod, prefix, suffix string) int {
	t.Helper()
	sum := 0
	for name, n := range w.sidecar[p].Stats(t) {
		if strings.HasPrefix(name, prefix) && strings.HasSuffix(name, suffix) {
			sum += n
		}
	}
	return sum
}
