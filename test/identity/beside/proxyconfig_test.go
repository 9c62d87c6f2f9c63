package beside

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	admin "github.com/coxswain-mesh/coxswain/test/kit/page"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// envoys starts a real Envoy of each control plane, which say the same of themselves.
func (c istioctl) envoys(t *testing.T) {
	t.Helper()
	envoy.Binary(t) // or skip
	for _, s := range []*server{c.istiod, c.coxswain} {
		dir, err := os.MkdirTemp("", "beside-") // a socket's path is short
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		xds := mesh.NewRelay(t, filepath.Join(dir, "xds"), func() string { return s.plain }).Address
		socket := "unix:" + filepath.Join(dir, "admin")
		bootstrap, err := exec.Command(binary, "bootstrap", "--xds", xds, "--admin", socket, "--namespace", "shop",
			"--name", "real", "--ip", "10.0.0.3", "--labels", "app=real",
			"--metadata", `PROXY_CONFIG={"discoveryAddress": "istiod.istio-system.svc:15012"}`).Output()
		if err != nil {
			t.Fatal(err)
		}
		e := envoy.Isolated(t, "the Envoy of "+s.name, socket, bootstrap)
		e.Ready(t)
		wait.For(t, e.Name+" has routes", func() error {
			if dump := e.ConfigDump(t); !strings.Contains(dump, "out.example") {
				return fmt.Errorf("not yet in %d bytes", len(dump))
			}
			return nil
		})
		c.real[s] = e
	}
}

// dumps are files that istioctl reads: what a real Envoy has, and what the control plane says that
// it is to have.
func (c istioctl) dumps(t *testing.T, s *server) (envoys, planes, clusters string) {
	t.Helper()
	write := func(name, text string, err error) string {
		if err != nil {
			t.Fatal(s.name, err)
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	envoys = write("envoy.json", c.real[s].ConfigDump(t), nil)
	text, err := c.ask(t, s, "x", "internal-debug", "config_dump?proxyID=real.shop&include_eds")
	planes = write("plane.json", text, err)
	text, err = admin.Get(c.real[s].Admin, "/clusters?format=json")
	return envoys, planes, write("clusters.json", text, err)
}

// moving is what is never the same in what proxy-config prints: where sockets and files are.
var moving = regexp.MustCompile(`/tmp/[A-Za-z]*(beside-|TestIstioctl)[^\s"]*`)

// cut are the first of a virtual host's names, which are in another order, as docs/differences.md
// says.
var cut = regexp.MustCompile(`(\S+, )*\S+ (\+ \d+ more\.\.\.)`)

// proxyConfig: what proxy-config prints of a file.
func (c istioctl) proxyConfig(t *testing.T) {
	type file struct{ envoys, planes, clusters string }
	files := map[*server]file{}
	for _, s := range []*server{c.istiod, c.coxswain} {
		e, p, cl := c.dumps(t, s)
		files[s] = file{e, p, cl}
	}
	for _, of := range []struct {
		name  string
		kinds []string
		file  func(file) string
	}{
		{"an Envoy's", []string{"cluster", "listener", "route", "ecds", "secret", "bootstrap", "all"}, func(f file) string { return f.envoys }},
		{"an Envoy's clusters", []string{"endpoint"}, func(f file) string { return f.clusters }},
		{"a control plane's", []string{"cluster", "listener", "route", "ecds", "secret", "bootstrap", "all"}, func(f file) string { return f.planes }},
	} {
		for _, kind := range of.kinds {
			for _, format := range []string{"short", "json"} {
				got := map[*server]any{}
				for s, f := range files {
					text, err := c.run(t, "proxy-config", kind, "--file", of.file(f), "-o", format)
					if err != nil {
						text = err.Error() // of what an Envoy hasn't got
					}
					got[s] = comparable(format, moving.ReplaceAllString(text, "…"))
				}
				if difference := cmp.Diff(got[c.istiod], got[c.coxswain]); difference != "" {
					t.Errorf("%s: %s -o %s: istiod (-), coxswain (+): %s", of.name, kind, format, difference)
				}
			}
		}
	}
	for s, f := range files {
		text, err := c.ask(t, s, "x", "proxy-status", "real.shop", "--file", f.envoys)
		for _, words := range []string{"Clusters Match", "Listeners Match", "Routes Match"} {
			if err != nil || !strings.Contains(text, words) {
				t.Errorf("proxy-status of the Envoy of %s: no %q: %v %s", s.name, words, err, text)
			}
		}
	}
}

// comparable is what is compared of a text: of JSON all but versions, times and the order of lists,
// of tables all but the order of lines and how wide columns are.
func comparable(format, text string) any {
	var all []any
	if format != "short" {
		d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), len(text)+1)
		for {
			var v any
			err := d.Decode(&v)
			if errors.Is(err, io.EOF) {
				return all
			}
			if err != nil {
				break
			}
			all = append(all, inOrder(without(camel(v), []string{"lastUpdated", "versionInfo"})))
		}
	}
	var lines []string
	for line := range strings.Lines(cut.ReplaceAllString(text, "… $2")) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	slices.Sort(lines)
	return lines
}

// camel has the names of fields as istiod writes them.
func camel(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			if !strings.ContainsAny(key, "./@|") {
				key = underscore.ReplaceAllStringFunc(key, func(s string) string { return strings.ToUpper(s[1:]) })
			}
			out[key] = camel(value)
		}
		return out
	case []any:
		for i := range v {
			v[i] = camel(v[i])
		}
	}
	return v
}

var underscore = regexp.MustCompile(`_[a-z0-9]`)
