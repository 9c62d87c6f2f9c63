package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

const analyzedRoute = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: test}
spec:
  hosts: [web.example]
  http:
  - route:
    - destination: {host: web.example, subset: %s}
`

const analyzedRule = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web, namespace: test}
spec:
  host: web.example
  subsets: [{name: v1}]
`

// TestAnalyzeLive analyzes what a running control plane has: a route to a subset that is not there
// is found in its file, and the fix clears it.
func TestAnalyzeLive(t *testing.T) {
	dir := t.TempDir()
	route := filepath.Join(dir, "route.yaml")
	place(t, filepath.Join(dir, "web.yaml"), heldService)
	place(t, filepath.Join(dir, "rule.yaml"), analyzedRule)
	place(t, route, fmt.Sprintf(analyzedRoute, "v2"))
	plane := mesh.Start(t, program, dir)
	plane.Ready(t)
	analyzed := func() (string, error) {
		out, err := exec.CommandContext(t.Context(), program, "analyze", "--live", "--addr", plane.HTTP).CombinedOutput()
		return string(out), err
	}
	wait.For(t, "the subset is missed", func() error {
		if out, err := analyzed(); err == nil || !strings.Contains(out, "route.yaml:") || !strings.Contains(out, "(IST0101)") {
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
	place(t, route, fmt.Sprintf(analyzedRoute, "v1"))
	wait.For(t, "nothing is wrong", func() error {
		if out, err := analyzed(); err != nil || strings.Contains(out, "IST") {
			return fmt.Errorf("%v: %s", err, out)
		}
		return nil
	})
}
