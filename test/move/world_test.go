package move

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/node"
	"github.com/coxswain-mesh/coxswain/test/kit/program"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// binary is the path of the program under test.
var binary string

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && roles[os.Args[1]] != nil {
		roles[os.Args[1]](os.Args[2])
	}
	node.Main()
	mesh.Plain(&binary, m.Run)
}

// world is a cluster, and a folder with what a reader of the page has at hand.
type world struct {
	cluster *kube.Cluster
	node    *node.Node
	// dir is where commands run, results where clients in pods say how they fared, a file each.
	dir, results string
	env          []string
	// plug, if it isn't nil, is called before istiod is there.
	plug func(t *testing.T)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	istio := module(t, "istio.io/istio")
	peers := program.Built(t, "test/peer", "peer", "pilot-discovery", "pilot-agent")
	envoyAt, rules := envoy.Binary(t), iptables(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{dir: t.TempDir(), results: t.TempDir(), cluster: kube.StartWithAccounts(t)}
	inCluster := []string{"KUBERNETES_SERVICE_HOST=" + apiAddress, "KUBERNETES_SERVICE_PORT=443"}
	agent := node.Image{
		Entrypoint: []string{"/usr/local/bin/pilot-agent"}, Env: rules,
		Files: map[string]string{
			"/usr/local/bin/pilot-agent": filepath.Join(peers, "pilot-agent"), "/usr/local/bin/envoy": envoyAt,
			"/var/lib/istio/envoy/envoy_bootstrap_tmpl.json": filepath.Join(istio, "tools/packaging/common/envoy_bootstrap.json"),
		},
	}
	w.node = node.Start(t, w.cluster.Kubeconfig, map[string]node.Image{
		"docker.io/istio/pilot": {
			Entrypoint: []string{"/usr/local/bin/pilot-discovery"}, Env: inCluster,
			Files: map[string]string{"/usr/local/bin/pilot-discovery": filepath.Join(peers, "pilot-discovery")},
		},
		"docker.io/istio/proxyv2": agent,
		"registry.example.com/mesh/coxswain": {
			Entrypoint: []string{"/usr/local/bin/coxswain"}, Args: []string{"discovery"}, Env: inCluster,
			Files: map[string]string{"/usr/local/bin/coxswain": binary},
		},
		"example.com/trial": {Entrypoint: []string{"/bin/trial"}, Files: map[string]string{"/bin/trial": self, "/results": w.results}},
	})
	w.node.Forward(t, kube.ClusterIPs, w.cluster.Address())
	w.hands(t, filepath.Join(istio, "manifests/charts"))
	return w
}

// apiAddress is the ClusterIP of the API server itself, the first of the range.
const apiAddress = "10.96.0.1"

// hands gives a reader programs, a kubeconfig, and charts by the names that the page has for them.
func (w *world) hands(t *testing.T, charts string) {
	t.Helper()
	helm := filepath.Join(program.Built(t, "test/chart/helm", "helm", "helm"), "helm")
	bin, dist := filepath.Join(w.dir, "bin"), filepath.Join(w.dir, "dist")
	for _, dir := range []string{bin, filepath.Join(w.dir, "istio"), filepath.Join(w.dir, "home")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for at, path := range map[string]string{
		"bin/coxswain": binary, "bin/helm": helm, "bin/kubectl": filepath.Join(kube.Programs(t), "kubectl"),
		"istio/base": filepath.Join(charts, "base"), "istio/istiod": filepath.Join(charts, "istio-control/istio-discovery"),
	} {
		if err := os.Symlink(path, filepath.Join(w.dir, at)); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("../../deploy/pack-chart.sh", helm, "v0.2.0", dist).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	home := filepath.Join(w.dir, "home")
	w.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "KUBECONFIG="+w.cluster.Kubeconfig, "HOME="+home, "XDG_RUNTIME_DIR="+home)
}

// run runs a script in the reader's folder.
func (w *world) run(t *testing.T, script string) string {
	t.Helper()
	out, err := w.try(script)
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	return out
}

func (w *world) try(script string) (string, error) {
	cmd := exec.Command("timeout", "300", "/bin/sh", "-ec", script)
	cmd.Dir, cmd.Env = w.dir, w.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// module is the folder of a module that test/peer is built with.
func module(t *testing.T, path string) string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", path)
	cmd.Dir = "../peer"
	out, err := cmd.Output()
	var is struct{ Dir string }
	if err != nil || json.Unmarshal(out, &is) != nil {
		t.Fatalf("%s: %v %s", path, err, out)
	}
	return is.Dir
}

// iptables is the environment in which the system's iptables are found, or those of
// `make iptables`. Without any the test is skipped.
func iptables(t *testing.T) []string {
	t.Helper()
	if _, err := exec.LookPath("iptables-restore"); err == nil {
		return nil
	}
	at := filepath.Join(envoy.Root(t), ".cache/iptables/usr")
	libs, err := filepath.Glob(filepath.Join(at, "lib/*"))
	if err != nil || len(libs) != 1 {
		need.Missing(t, "no iptables here: `make iptables` installs them (%v %v)", libs, err)
	}
	return []string{
		fmt.Sprintf("PATH=%s:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", filepath.Join(at, "sbin")),
		"LD_LIBRARY_PATH=" + libs[0], "XTABLES_LIBDIR=" + filepath.Join(libs[0], "xtables"),
	}
}

// documents joins objects.
func documents(all ...string) string { return strings.Join(all, "\n---\n") }
