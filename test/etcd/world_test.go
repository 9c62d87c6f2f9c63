package etcd_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/sdk/process"
	"github.com/coxswain-mesh/coxswain/test/etcd"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// program is the path of the binary under test.
var program string

func TestMain(m *testing.M) { mesh.Quick(&program, m.Run) }

// The prefixes of what etcd holds.
const resources, instances = "/coxswain/config/", "/coxswain/instances/"

// entries are of plugins.yaml for an etcd at an address: both plugins, and the giver of addresses
// with a short Lease.
func entries(address string) string {
	return fmt.Sprintf(`
  - {name: resources, kind: config, builtin: config/etcd, config: {endpoints: ["http://%[1]s"]}}
  - {name: instances, kind: registry, builtin: registry/etcd, config: {endpoints: ["http://%[1]s"]}}
  - name: addresses
    kind: controller
    builtin: controller/addresses
    config: {lease: 2s}
    allow: {store: [networking.istio.io/ServiceEntry, coordination.k8s.io/Lease]}
`, address)
}

// set writes a plugins.yaml: the default set, and more.
func set(t *testing.T, more string) string {
	t.Helper()
	text, err := os.ReadFile("../../plugins.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "plugins.yaml")
	put(t, file, string(text)+more)
	return file
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// plane starts a control plane, with files in a folder of its own.
func plane(t *testing.T, plugins string) *mesh.Plane {
	t.Helper()
	p := mesh.Start(t, program, t.TempDir(), "--plugins", plugins)
	p.Ready(t)
	return p
}

// object writes a resource as YAML.
func object(t *testing.T, s *etcd.Server, kind, name, spec string) {
	t.Helper()
	s.Put(t, resources+"networking.istio.io/"+kind+"/shop/"+name,
		fmt.Sprintf("apiVersion: networking.istio.io/v1\nkind: %s\nmetadata: {name: %s, namespace: shop}\nspec: %s\n", kind, name, spec))
}

// instance writes an instance of a service with a host of its name.
func instance(t *testing.T, s *etcd.Server, service, id, address string, port int) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"host": service + ".example", "namespace": "shop", "address": address, "port": port, "protocol": "HTTP"})
	if err != nil {
		t.Fatal(err)
	}
	s.Put(t, instances+service+"/"+id, string(text))
}

const (
	clusterType = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	sidecar     = "--ip 127.0.0.5 --namespace shop --interception NONE"
)

// hasCluster waits until a sidecar has, or has not, a cluster.
func hasCluster(t *testing.T, p *mesh.Plane, name string, there bool) {
	t.Helper()
	bootstrap := p.Bootstrap(t, strings.Fields(sidecar)...)
	wait.For(t, fmt.Sprintf("cluster %s: %v", name, there), func() error {
		for _, got := range mesh.Names(t, p.Fetch(t, bootstrap, clusterType)) {
			if got == name {
				if there {
					return nil
				}
				return fmt.Errorf("it is there")
			}
		}
		if there {
			return fmt.Errorf("it is not there")
		}
		return nil
	})
}

// plugin is a built-in one as a process.
func plugin(name string) plugintest.Target {
	return plugintest.Process(process.Command{Path: program, Args: []string{"plugin", name}})
}
