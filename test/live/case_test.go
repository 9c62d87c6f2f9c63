package live

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

// recorded is a configuration with proxies: mostly one for which istiod's answers were recorded.
type recorded struct {
	dir     string
	proxies []recordedProxy
}

type recordedProxy struct {
	name string
	node *corev3.Node
	// says: what the configuration that Envoy has must contain. Spaces don't count.
	says []string
}

// cases returns the folders of all. Without them the test is skipped.
func cases(t *testing.T) []string {
	t.Helper()
	shared := os.Getenv("COXSWAIN_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "shared")
	}
	if !filepath.IsAbs(shared) {
		shared = filepath.Join(envoy.Root(t), shared)
	}
	dirs, err := filepath.Glob(filepath.Join(shared, "parity", "cases", "*"))
	if err != nil || len(dirs) == 0 {
		need.Missing(t, "no recorded configurations in %s: set COXSWAIN_SHARED", shared)
	}
	return dirs
}

// ownCases returns the folders of those for which istiod was not asked: parts that have to be
// switched on, and settings of the mesh.
func ownCases(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join("testdata", "*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	return dirs
}

func readCase(t *testing.T, dir string) *recorded {
	t.Helper()
	var file struct {
		Proxies []struct {
			Name string          `json:"name"`
			Node json.RawMessage `json:"node"`
			Says []string        `json:"says"`
		} `json:"proxies"`
	}
	b, err := os.ReadFile(filepath.Join(dir, "case.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, &file); err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	c := &recorded{dir: dir}
	for _, p := range file.Proxies {
		n := &corev3.Node{}
		if err := protojson.Unmarshal(p.Node, n); err != nil {
			t.Fatalf("%s: node of %s: %v", dir, p.Name, err)
		}
		c.proxies = append(c.proxies, recordedProxy{p.Name, n, p.Says})
	}
	return c
}

// serve starts a control plane on the case.
func (c *recorded) serve(t *testing.T) *mesh.Plane {
	t.Helper()
	var args []string
	for flag, name := range map[string]string{"--meshConfig": "mesh.yaml", "--networksConfig": "networks.yaml", "--plugins": "plugins.yaml"} {
		path := filepath.Join(c.dir, name)
		if _, err := os.Stat(path); err == nil {
			args = append(args, flag, path)
		}
	}
	p := mesh.Start(t, program, filepath.Join(c.dir, "config"), args...)
	p.Ready(t)
	return p
}
