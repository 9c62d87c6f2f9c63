package sidecars

import (
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/coxswain-mesh/coxswain/test/kit/authority"
	"github.com/coxswain-mesh/coxswain/test/kit/netns"
	"github.com/coxswain-mesh/coxswain/test/kit/scenario"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// awaited is a case of testdata/awaited/cases.yaml: a sidecar is told something that needs what
// somebody else has, and isn't there.
type awaited struct {
	Name, Config string
	// Pod is whose sidecar is told: the server's, whose port the pod without a sidecar asks, or the
	// client's, whose workload asks.
	Pod string
	// Answers are statuses by path, or by HOST/PATH; 0: the connection ends without an answer.
	Answers map[string]int
}

// Policies that come with what is awaited, of the server's sidecar and of the client's.
const (
	deniesAdmin = `
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: admin, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  action: DENY
  rules: [{to: [{operation: {paths: [/admin]}}]}]
---
`
	abortsAdmin = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: admin, namespace: shop}
spec:
  hosts: [web.shop.svc.cluster.local]
  http:
  - match: [{uri: {exact: /admin}}]
    fault: {abort: {httpStatus: 403, percentage: {value: 100}}}
    route: [{destination: {host: web.shop.svc.cluster.local}}]
  - route: [{destination: {host: web.shop.svc.cluster.local}}]
---
`
)

// TestAwaited: what isn't there yet keeps no policy from sidecars, neither from the one in whose
// pod the policy counts nor from the one that asks. In each case one that runs is told of both
// together, and another one starts with both, over the other protocol.
func TestAwaited(t *testing.T) {
	var all []awaited
	read(t, "testdata/awaited/cases.yaml", &all)
	documented := text(t, "../../docs/reliability.md")
	start := settings{protocol: "sotw", authority: authority.New(t), mesh: "testdata/awaited/mesh.yaml"}
	w := newWorld(t, start)
	w.write(t, "shared.yaml", text(t, "testdata/awaited/shared.yaml"))
	whole := t // sidecars outlive their case
	protocols := map[*netns.Pod]string{w.client: "sotw", w.server: "sotw"}
	for _, c := range all {
		t.Run(c.Name, func(t *testing.T) {
			if !strings.Contains(documented, "`"+c.Name+"`") {
				t.Errorf("docs/reliability.md doesn't name %s", c.Name)
			}
			p, policy, account := w.server, deniesAdmin, "web"
			if c.Pod == "client" {
				p, policy, account = w.client, abortsAdmin, "client"
			}
			w.clear(t, "awaited.yaml")
			c.answers(t, w, map[string]int{"/": 200, "/admin": 200})
			w.write(t, "awaited.yaml", policy+c.Config)
			want := maps.Clone(c.Answers)
			want["/admin"] = 403
			if want["/"] == 0 { // no connection gets as far
				want["/admin"] = 0
			}
			c.answers(t, w, want)
			protocols[p] = map[string]string{"sotw": "delta", "delta": "sotw"}[protocols[p]]
			s := start
			s.protocol = protocols[p]
			w.sidecar[p].Stop()
			w.start(whole, p, account, w.socket, s)
			c.answers(t, w, want)
		})
	}
}

// clear takes away what a file had, which may be held at first: that is found out a moment after it
// is gone, and then it is back. So it is looked several times.
func (w *world) clear(t *testing.T, name string) {
	t.Helper()
	w.write(t, name, "# nothing\n") // one that is empty keeps what it had
	looks := 0
	wait.For(t, "what "+name+" had is gone", func() error {
		looks++
		_ = exec.Command(program, "hold", "apply", "files", "--addr", w.plane.HTTP).Run() // there may be nothing to apply
		text, err := w.plane.Get("/debug/configs")
		if err == nil && strings.Contains(text, name) {
			looks, err = 0, fmt.Errorf("it is not: %s", text)
		}
		if err == nil && looks < 5 {
			err = fmt.Errorf("it was seen %d times", looks)
		}
		return err
	})
}

// text is a file.
func text(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.FromSlash(file))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// read reads a file of cases.
func read(t *testing.T, file string, into any) {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(text(t, file)))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// answers waits until requests are answered with these statuses.
func (c awaited) answers(t *testing.T, w *world, want map[string]int) {
	t.Helper()
	wait.For(t, fmt.Sprintf("%s: answers are %v", c.Name, want), func() error {
		got := map[string]int{}
		for path := range want {
			got[path] = c.ask(w, path)
		}
		if !maps.Equal(got, want) {
			return fmt.Errorf("they are %v", got)
		}
		return nil
	})
}

// token is one whose signature nobody has made.
var token = strings.Join([]string{
	base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","typ":"JWT"}`)), base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"i","sub":"s"}`)),
	base64.RawURLEncoding.EncodeToString(make([]byte, 256)),
}, ".")

// otherAddress is that of the service other of testdata/awaited/shared.yaml, and of those of cases.
const otherAddress = "10.96.0.20:80"

// ask returns the status; 0: there is no answer. A request for /token has a token.
func (c awaited) ask(w *world, path string) int {
	pod, ask := w.stranger, scenario.Ask{Get: web + path, At: w.server.Address + ":8080"}
	if c.Pod == "client" {
		pod, ask.At = w.client, webAddress+":80"
		if !strings.HasPrefix(path, "/") {
			ask.Get, ask.At = path, otherAddress
		}
	}
	if path == "/token" {
		ask.Headers = map[string]string{"Authorization": "Bearer " + token}
	}
	answer, _, err := askPath(pod, ask)
	if err != nil {
		return 0
	}
	return answer.Status
}
