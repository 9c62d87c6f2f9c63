package traffic

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	"go.yaml.in/yaml/v3"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/page"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// conflict is a case of testdata/conflicts/cases.yaml: two Gateways ask one proxy for the same
// port.
type conflict struct {
	Name string
	// First and Second are servers; FirstNames and SecondNames those of TLS hellos that are routed.
	First, Second []string
	FirstNames    []string `yaml:"firstNames"`
	SecondNames   []string `yaml:"secondNames"`
	// Listeners are the addresses at which the proxy listens.
	Listeners []string
	// Answers: requests to 127.0.0.1 are answered, by whoever came first.
	Answers bool
	// Told is what is said of the one that loses.
	Told string

	// Label is its proxy's, Port that which both ask for.
	Label string `yaml:"-"`
	Port  int    `yaml:"-"`
}

// side is one of the two Gateways, with its routes.
const side = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: "%[1]s", namespace: test, creationTimestamp: "%[5]s"}
spec:
  selector: {case: "%[2]s"}
  servers: [%[3]s]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: "%[1]s", namespace: test, creationTimestamp: "%[5]s"}
spec:
  hosts: ["*"]
  gateways: ["%[1]s"]
  http: [{route: [{destination: {host: web.example}}]}]
  tcp: [{route: [{destination: {host: web.example, port: {number: 80}}}]}]
%[4]s`

func (c conflict) side(t *testing.T, name string, servers, names []string, created string) string {
	t.Helper()
	tls := ""
	if len(names) > 0 {
		list := strings.Join(names, `", "`)
		tls = fmt.Sprintf(`---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: "%s-tls", namespace: test, creationTimestamp: "%s"}
spec:
  hosts: ["*.example"]
  gateways: ["%s"]
  tls: [{match: [{sniHosts: ["%s"]}], route: [{destination: {host: web.example, port: {number: 80}}}]}]
`, name, created, name, list)
	}
	return c.fill(t, fmt.Sprintf(side, name, c.Label, strings.Join(servers, ", "), tls, created))
}

// TestConflicts: of two Gateways that ask for the same port, a real Envoy refuses nothing, one that
// runs and one that starts; who came first is served as before.
func TestConflicts(t *testing.T) {
	envoy.Binary(t)
	var all []conflict
	d := yaml.NewDecoder(strings.NewReader(read(t, "testdata/conflicts/cases.yaml")))
	d.KnownFields(true)
	if err := d.Decode(&all); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "config")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	shared, err := awaited{Web: mesh.NewBackend(t, "web").Port}.fill(read(t, "testdata/awaited/shared.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "shared.yaml"), shared)
	for i := range all {
		c := &all[i]
		c.Label, c.Port = fmt.Sprintf("case-%d", i), wait.Port(t)
		put(t, filepath.Join(dir, c.Label+".yaml"), c.side(t, c.Label, c.First, c.FirstNames, "2026-01-01T00:00:00Z"))
	}
	plane := mesh.Start(t, program, dir)
	plane.Ready(t)
	for _, c := range all {
		t.Run(c.Name, func(t *testing.T) {
			w := awaited{Name: c.Label, Port: c.Port}
			runs := w.start(t, plane, "sotw")
			if c.Answers {
				w.answers(t, map[string]int{"/": http.StatusOK})
			}
			second := c.side(t, c.Label+"-second", c.Second, c.SecondNames, "2026-01-02T00:00:00Z")
			put(t, filepath.Join(dir, c.Label+"-second.yaml"), second)
			wait.For(t, "the second Gateway is read", func() error {
				text, err := plane.Get("/debug/configz")
				if err == nil && !strings.Contains(text, `"`+c.Label+`-second"`) {
					err = fmt.Errorf("it is not in %d bytes", len(text))
				}
				return err
			})
			c.served(t, w, runs)
			runs.Stop()
			c.served(t, w, w.start(t, plane, "delta"))
			c.told(t, plane)
		})
	}
}

// told waits until the log says who loses, and why.
func (c conflict) told(t *testing.T, plane *mesh.Plane) {
	t.Helper()
	want := c.fill(t, c.Told)
	wait.For(t, fmt.Sprintf("%s-second is told %q", c.Label, want), func() error {
		for line := range strings.Lines(plane.Log()) {
			if strings.Contains(line, c.Label+"-second") && strings.Contains(line, want) {
				return nil
			}
		}
		return errors.New("no line says so")
	})
}

func (c conflict) fill(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	if err := template.Must(template.New(c.Name).Parse(text)).Execute(&b, c); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// served waits until an Envoy listens where it should, and sees that it refused nothing.
func (c conflict) served(t *testing.T, w awaited, e *envoy.Envoy) {
	t.Helper()
	var want []string
	for _, at := range c.Listeners {
		want = append(want, fmt.Sprintf("%s:%d", at, c.Port))
	}
	wait.For(t, fmt.Sprintf("%s listens at %v", e.Name, want), func() error {
		text, err := page.Get(e.Admin, "/listeners")
		if err != nil {
			return err
		}
		var got []string
		for line := range strings.Lines(text) {
			_, at, _ := strings.Cut(strings.TrimSpace(line), "::")
			got = append(got, at)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("it listens at %v", got)
		}
		return nil
	})
	if c.Answers {
		w.answers(t, map[string]int{"/": http.StatusOK})
	}
	for name, n := range e.Stats(t) {
		if n > 0 && strings.HasSuffix(name, ".update_rejected") {
			t.Errorf("%s: %s = %d", e.Name, name, n)
		}
	}
}
