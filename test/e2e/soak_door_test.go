package e2e

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/swap"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// doorSet has one authenticator, examples/authenticator-token, which knows the SHA-256 of webToken.
const doorSet = `
plugins:
- name: door
  kind: authenticator
  process: {command: PATH/door}
  insecure: true
  rollback: {window: 50ms}
  config: {SUM: "spiffe://cluster.local/ns/shop/sa/web"}
- name: edge
  kind: generator
  builtin: generator/static
  config: {dir: resources}
`

// TestSoakAuthenticator swaps an authenticator between process and WASM while callers come. Each
// that should be let in is, each that should not is refused, and nobody is told to come again.
func TestSoakAuthenticator(t *testing.T) {
	dir := t.TempDir()
	compile(t, filepath.Join(dir, "door"), "authenticator-token")
	compile(t, filepath.Join(dir, "door.wasm"), "authenticator-token", "GOOS=wasip1", "GOARCH=wasm")
	place(t, filepath.Join(dir, "broken.wasm"), "this is no module")
	mesh.RuntimeDir(t)
	g := guard(t, strings.NewReplacer("PATH", dir, "SUM", fmt.Sprintf("%x", sha256.Sum256([]byte(webToken)))).Replace(doorSet), "--authPlaintext")
	b := &bench{t: t, dir: dir, file: filepath.Join(g.dir, "plugins.yaml"), plane: g.Plane}
	stop, stopped := make(chan struct{}), make(chan int)
	go func() { stopped <- g.knock(stop) }()
	for n := range max(4, *soakSwaps) {
		to := []string{"--wasm", "door.wasm"}
		if n%2 == 1 {
			to = []string{"--process", "./door"}
		}
		b.must("switched", append([]string{"swap", "door"}, to...)...)
		b.becomes("door", swap.Kept)
		b.fails("", "swap", "door", "--wasm", "broken.wasm")
	}
	close(stop)
	calls := <-stopped
	t.Logf("%d callers", calls)
	if calls < *soakSwaps {
		t.Errorf("%d callers came", calls)
	}
	wait.For(t, "each plugin has one process", func() error {
		if pids := children(t, g.PID()); len(pids) != 2 {
			return fmt.Errorf("there are %v", pids)
		}
		return nil
	})
}

// knock lets callers come, one that is known and one that isn't, until it is stopped. It returns
// how many came.
func (g *guarded) knock(stop <-chan struct{}) (calls int) {
	for {
		select {
		case <-stop:
			return calls
		default:
		}
		calls += 2
		s, _, err := g.open(webToken)
		if err != nil {
			g.t.Errorf("one who is known: %v", err)
			return calls
		}
		_ = s.CloseSend()
		if _, _, err := g.open("stranger-0123456789"); status.Code(err) != codes.Unauthenticated {
			g.t.Errorf("a stranger: %v", err)
			return calls
		}
	}
}
