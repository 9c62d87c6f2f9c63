package live

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

var (
	lawSeed  = flag.Uint64("law.seed", 1, "seed of the history")
	lawSteps = flag.Int("law.steps", 12, "how many edits")
)

// document is one resource of the recorded configurations. File is the same for equal kinds and
// names.
type document struct {
	file string
	text []byte
}

// TestServerKeepsTheLaw edits the configuration of a running control plane at random. After each
// edit, proxies on either protocol must come to have what a control plane that starts then gives,
// and no push may be without a change.
func TestServerKeepsTheLaw(t *testing.T) {
	r := rand.New(rand.NewPCG(*lawSeed, 11))
	t.Logf("seed %d", *lawSeed)
	dirs := cases(t)
	documents := allDocuments(t, dirs)
	dir := t.TempDir()
	config := filepath.Join(dir, "config")
	if err := os.Mkdir(config, 0o700); err != nil {
		t.Fatal(err)
	}
	plane := serveEdited(t, dir)
	var clients []*client
	var proxies []recordedProxy
	for range 4 {
		p := oneProxy(t, r, dirs)
		proxies = append(proxies, p)
		clients = append(clients, connect(t, plane.XDS, "sotw", p), connect(t, plane.XDS, "delta", p))
	}
	for step := range *lawSteps {
		edit(t, r, dir, dirs, documents)
		fresh := fromScratch(t, dir, proxies)
		for i, c := range clients {
			wait.For(t, fmt.Sprintf("step %d: %s has what starts afresh gives", step, c.name), func() error { return c.differs(fresh[i/2]) })
		}
	}
	for _, c := range clients {
		for _, f := range c.complaints() {
			t.Errorf("%s: %s", c.name, f)
		}
	}
}

func oneProxy(t *testing.T, r *rand.Rand, dirs []string) recordedProxy {
	c := readCase(t, dirs[r.IntN(len(dirs))])
	p := c.proxies[r.IntN(len(c.proxies))]
	p.name = filepath.Base(c.dir) + "/" + p.name
	return p
}

func serveEdited(t *testing.T, dir string) *mesh.Plane {
	t.Helper()
	p := mesh.Start(t, program, filepath.Join(dir, "config"),
		"--meshConfig", filepath.Join(dir, "mesh.yaml"), "--debounceAfter", "20ms", "--plugins", lossesApply(t),
		"--trustCreationTimestamp") // else who came first counts, which a fresh one can't know
	p.Ready(t)
	return p
}

// lossesApply is a file with the default plugins, which may take away as much as they like: a
// history removes at random, and means it.
func lossesApply(t *testing.T) (file string) {
	t.Helper()
	set, err := os.ReadFile("../../plugins.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "plugins.yaml")
	set = regexp.MustCompile(`(?m)^    kind: (config|registry)$`).ReplaceAll(set, []byte("$0\n    onLoss: apply"))
	if err := os.WriteFile(file, set, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// fromScratch is what a control plane that starts now gives to proxies.
func fromScratch(t *testing.T, dir string, proxies []recordedProxy) []map[string][]byte {
	t.Helper()
	var out []map[string][]byte
	t.Run("from scratch", func(t *testing.T) {
		plane := serveEdited(t, dir)
		for _, p := range proxies {
			c := connect(t, plane.XDS, "sotw", p)
			wait.For(t, p.name+" has all", func() error {
				has, err := c.snapshot()
				if err != nil {
					return err
				}
				out = append(out, has)
				return nil
			})
		}
	})
	if len(out) != len(proxies) {
		t.FailNow()
	}
	return out
}

func (c *client) differs(want map[string][]byte) error {
	got, err := c.snapshot()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !bytes.Equal(got[name], want[name]) {
			return fmt.Errorf("%s differs (%d bytes instead of %d)", name, len(got[name]), len(want[name]))
		}
	}
	if more := without(got, want); len(more) > 0 {
		return fmt.Errorf("too much: %v", more)
	}
	return nil
}

// edit changes files as people would: all of a case, some resources, the mesh's settings.
func edit(t *testing.T, r *rand.Rand, dir string, dirs []string, documents [][]document) {
	t.Helper()
	config := filepath.Join(dir, "config")
	n := r.IntN(len(documents))
	for _, d := range documents[n] {
		if r.IntN(3) > 0 {
			t.Logf("write %s", d.file)
			put(t, filepath.Join(config, d.file), d.text)
		}
	}
	here, err := os.ReadDir(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range here {
		if r.IntN(6) == 0 || len(here) > 100 && r.IntN(2) == 0 {
			t.Logf("remove %s", f.Name())
			if err := os.Remove(filepath.Join(config, f.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("mesh settings of %s", filepath.Base(dirs[n]))
	settings, err := os.ReadFile(filepath.Join(dirs[n], "mesh.yaml"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "mesh.yaml"), append(settings, "# the mesh's settings\n"...))
}

// put writes a file in one step.
func put(t *testing.T, path string, text []byte) {
	t.Helper()
	next := filepath.Join(t.TempDir(), "next")
	if err := os.WriteFile(next, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

var separator = regexp.MustCompile(`(?m)^---\s*$`)

// allDocuments are the resources of all cases, by case.
func allDocuments(t *testing.T, dirs []string) [][]document {
	t.Helper()
	out := make([][]document, len(dirs))
	for i, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "config", "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			content, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range separator.Split(string(content), -1) {
				var meta struct {
					Kind     string
					Metadata struct{ Name, Namespace string }
				}
				if err := yaml.Unmarshal([]byte(text), &meta); err != nil {
					t.Fatalf("%s: %v", f, err)
				}
				if meta.Kind != "" {
					name := fmt.Sprintf("%s.%s.%s.yaml", meta.Kind, meta.Metadata.Namespace, meta.Metadata.Name)
					out[i] = append(out[i], document{name, []byte(text)})
				}
			}
		}
	}
	return out
}
