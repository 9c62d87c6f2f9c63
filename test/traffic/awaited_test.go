package traffic

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"

	"go.yaml.in/yaml/v3"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// awaited is a case of testdata/awaited/cases.yaml: a proxy is told something that needs what
// somebody else has, and isn't there.
type awaited struct {
	Name, Config string
	// Other is a host to which /other leads.
	Other string
	// Answers are statuses by path; 0: the connection ends without an answer.
	Answers map[string]int

	// Port is its gateway's, Second another one, Web that of a backend.
	Port, Second, Web int `yaml:"-"`
}

// base is a gateway, protects a policy of it.
const (
	base = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: "{{.Name}}", namespace: test}
spec:
  selector: {case: "{{.Name}}"}
  servers:
  - port: {number: {{.Port}}, name: http, protocol: HTTP}
    bind: 127.0.0.1
    hosts: ["*"]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: "{{.Name}}", namespace: test}
spec:
  hosts: ["*"]
  gateways: ["{{.Name}}"]
  http:
{{- if .Other}}
  - match: [{uri: {prefix: /other}}]
    route: [{destination: {host: "{{.OtherHost}}", port: {number: 80}}}]
{{- end}}
  - route: [{destination: {host: web.example}}]
`
	protects = `
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: "{{.Name}}-admin", namespace: test}
spec:
  selector: {matchLabels: {case: "{{.Name}}"}}
  action: DENY
  rules: [{to: [{operation: {paths: [/admin]}}]}]
---
`
)

// OtherHost is Other with the case's name in it.
func (a awaited) OtherHost() (string, error) { return a.fill(a.Other) }

func (a awaited) fill(text string) (string, error) {
	var b bytes.Buffer
	tmpl, err := template.New(a.Name).Parse(text)
	if err == nil {
		err = tmpl.Execute(&b, a)
	}
	return b.String(), err
}

// TestAwaited: what isn't there yet keeps no policy from Envoys. In each case one that runs is told
// of both together, and another one starts with both.
func TestAwaited(t *testing.T) {
	envoy.Binary(t)
	var all []awaited
	d := yaml.NewDecoder(strings.NewReader(read(t, "testdata/awaited/cases.yaml")))
	d.KnownFields(true)
	if err := d.Decode(&all); err != nil {
		t.Fatal(err)
	}
	documented := read(t, "../../docs/reliability.md")
	web := mesh.NewBackend(t, "web")
	dir := filepath.Join(t.TempDir(), "config")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(t *testing.T, a awaited, name, text string) {
		t.Helper()
		filled, err := a.fill(text)
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, name+".yaml"), filled)
	}
	write(t, awaited{Web: web.Port}, "shared", read(t, "testdata/awaited/shared.yaml"))
	for i := range all {
		a := &all[i]
		if !strings.Contains(documented, "`"+a.Name+"`") {
			t.Errorf("docs/reliability.md doesn't name %s", a.Name)
		}
		a.Port, a.Second, a.Web = wait.Port(t), wait.Port(t), web.Port
		write(t, *a, a.Name, base)
	}
	plane := mesh.Start(t, program, dir, "--meshConfig", "testdata/awaited/mesh.yaml")
	plane.Ready(t)
	for i, a := range all {
		protocols := []string{"sotw", "delta"}
		if i%2 == 1 {
			slices.Reverse(protocols)
		}
		t.Run(a.Name, func(t *testing.T) {
			runs := a.start(t, plane, protocols[0])
			a.answers(t, map[string]int{"/": http.StatusOK, "/admin": http.StatusOK})
			write(t, a, a.Name+"-awaited", protects+a.Config)
			a.guarded(t)
			runs.Stop()
			a.start(t, plane, protocols[1])
			a.guarded(t)
		})
	}
}

func (a awaited) start(t *testing.T, plane *mesh.Plane, protocol string) *envoy.Envoy {
	t.Helper()
	at, name := wait.Address(t), a.Name+"-"+protocol
	e := envoy.Start(t, name, at, plane.Bootstrap(t, "--type", "router", "--name", name, "--namespace", "test",
		"--ip", "127.0.0.31", "--labels", "case="+a.Name, "--protocol", protocol, "--admin", at))
	e.Ready(t)
	return e
}

// guarded waits until the policy counts, and what else is answered is as the case says.
func (a awaited) guarded(t *testing.T) {
	t.Helper()
	want := maps.Clone(a.Answers)
	want["/admin"] = http.StatusForbidden
	if want["/"] == 0 { // no connection gets as far
		want["/admin"] = 0
	}
	a.answers(t, want)
}

func (a awaited) answers(t *testing.T, want map[string]int) {
	t.Helper()
	wait.For(t, fmt.Sprintf("%s answers %v", a.Name, want), func() error {
		got := map[string]int{}
		for path := range want {
			got[path] = a.ask(t, path)
		}
		if !maps.Equal(got, want) {
			return fmt.Errorf("it answers %v", got)
		}
		return nil
	})
}

// ask returns the status; 0: there is no answer. A request for /token has a token.
func (a awaited) ask(t *testing.T, path string) (status int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+strconv.Itoa(a.Port)+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if path == "/token" {
		r.Header.Set("Authorization", "Bearer "+newIssuer(t).token(map[string]any{"iss": "i"}))
	}
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}
