package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// moduleSet has an authenticator that is a module, before one that isn't. A call may take longer
// than the test: an answer of a module that failed does not wait for the deadline.
const moduleSet = `
plugins:
- name: door
  kind: authenticator
  wasm: {path: PATH, instances: 2, allow: {env: [MODE]}}
  insecure: true
  limits: {call: 10m}
- name: workloads
  kind: authenticator
  builtin: authenticator/token
  config: {file: workloads.yaml}
- name: edge
  kind: generator
  builtin: generator/static
  config: {dir: resources}
`

const knownTokens = `
tokens:
- {token: trap-0123456789ab, identities: [spiffe://cluster.local/ns/shop/sa/web]}
- {token: exit-0123456789ab, identities: [spiffe://cluster.local/ns/shop/sa/web]}
- {token: away-0123456789ab, identities: [spiffe://cluster.local/ns/shop/sa/web]}
`

// TestModuleAuthenticates: an authenticator as a module accepts, refuses, and fails, which harms
// nobody: the next one is asked.
func TestModuleAuthenticates(t *testing.T) {
	module := filepath.Join(t.TempDir(), "door.wasm")
	mesh.Build(t, module, "../../core/host/wasm/testdata/guest", "GOOS=wasip1", "GOARCH=wasm")
	t.Setenv("MODE", "authenticator")
	g := guard(t, strings.Replace(moduleSet, "PATH", module, 1), "--authPlaintext")
	accepts := func(token string) {
		t.Helper()
		if _, r, err := g.open(token); err != nil || len(r.Resources) != 1 {
			t.Errorf("%s: %v, %v", token, r, err)
		}
	}
	accepts("good")
	g.refuses("stranger", codes.Unauthenticated, "door: the token is unknown; workloads: the token is unknown")
	accepts(webToken) // which the module refuses
	g.write("workloads.yaml", knownTokens)
	for word, why := range map[string]string{"trap": "the plugin panicked", "exit": "the module ended with status 7", "away": "asking my server: unavailable"} {
		g.refuses(word+"-of-a-stranger", codes.Unavailable, "door could not tell: "+why+"; workloads: the token is unknown")
		wait.For(t, "the next authenticator knows it", func() error {
			_, _, err := g.open(word + "-0123456789ab")
			return err
		})
		accepts("good")
	}
	g.runsApart(g.Plugins(t)["door"].PID)
	if p := g.Plugins(t)["door"]; p.State != "serving" || p.Restarts > 0 {
		t.Errorf("%+v", p)
	}
	for _, words := range []string{"the module ended with status 7", "the plugin panicked"} {
		if !strings.Contains(g.Log(), words) {
			t.Errorf("the log lacks %q", words)
		}
	}
}

// runsApart checks that a module's process is a runner and a child of the core.
func (g *guarded) runsApart(pid int) {
	g.t.Helper()
	args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if !bytes.Contains(args, []byte("\x00wasm-runner\x00")) || !bytes.Contains(status, fmt.Appendf(nil, "\nPPid:\t%d\n", g.PID())) {
		g.t.Errorf("process %d is %q:\n%s", pid, args, status)
	}
}
