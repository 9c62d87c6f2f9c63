package sidecars

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/authority"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// TestMutual: sidecars with certificates speak mutual TLS with each other, by themselves
// (https://istio.io/latest/docs/concepts/security/), and PeerAuthentication says what a workload
// takes (https://istio.io/latest/docs/tasks/security/authentication/mtls-migration/).
func TestMutual(t *testing.T) {
	for name, s := range map[string]settings{
		"files": {protocol: "delta"},
		"SDS":   {protocol: "sotw", sds: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.authority = authority.New(t)
			w := newWorld(t, s)
			w.permissive(t)
			w.strict(t)
			w.identity(t)
			if s.sds {
				w.rotation(t, s.authority)
			}
			w.happy(t)
		})
	}
}

// spiffe is the identity of a service account of the namespace shop.
func spiffe(account string) string { return "spiffe://cluster.local/ns/shop/sa/" + account }

func (w *world) http() (seen, error)     { return askHTTP(w.client, webAddress+":80", web) }
func (w *world) tcp() (seen, error)      { return askTCP(w.client, webAddress+":9000") }
func (w *world) plain() (seen, error)    { return askHTTP(w.stranger, w.server.Address+":8080", web) }
func (w *world) plainTCP() (seen, error) { return askTCP(w.stranger, w.server.Address+":9000") }

// permissive, the default: mutual TLS and plain text are taken side by side.
func (w *world) permissive(t *testing.T) {
	t.Helper()
	w.mutual(t)
	for what, ask := range map[string]func() (seen, error){"plain HTTP": w.plain, "plain TCP": w.plainTCP} {
		if s := through(t, what, ask); s.Identity != "" {
			t.Errorf("%s: the server knows its client as %s", what, s.Identity)
		}
	}
}

// mutual: the server knows who asks, and bytes of TCP go through TLS too.
func (w *world) mutual(t *testing.T) {
	t.Helper()
	if s := through(t, "HTTP", w.http); !strings.Contains(s.Identity, "URI="+spiffe("client")) || !strings.Contains(s.Identity, "By="+spiffe("web")) {
		t.Errorf("HTTP: the server knows its client as %q", s.Identity)
	}
	before := w.count(t, w.server, "listener.0.0.0.0_15006.ssl.", "handshake")
	through(t, "TCP", w.tcp)
	if w.count(t, w.server, "listener.0.0.0.0_15006.ssl.", "handshake") == before {
		t.Error("TCP: no TLS handshake")
	}
}

const strict = `
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: default, namespace: shop}
spec:
  mtls: {mode: STRICT}
`

// strict: plain text is refused.
func (w *world) strict(t *testing.T) {
	t.Helper()
	w.write(t, "strict.yaml", strict)
	refused(t, "plain HTTP", w.plain)
	refused(t, "plain TCP", w.plainTCP)
	refused(t, "plain text at the pod's address, passed through by the client's sidecar", func() (seen, error) {
		return askHTTP(w.client, w.server.Address+":8080", web)
	})
	refused(t, "plain text at a port that no service names", func() (seen, error) { return askTCP(w.stranger, w.server.Address+":9999") })
	w.mutual(t)
}

// identity: a server that isn't who the service's workloads are is refused.
func (w *world) identity(t *testing.T) {
	t.Helper()
	w.write(t, "mesh.yaml", strings.Replace(meshYAML, "serviceAccount: web", "serviceAccount: other", 1))
	refused(t, "a server of another identity", w.http)
	refused(t, "a server of another identity, by TCP", w.tcp)
	w.write(t, "mesh.yaml", meshYAML)
	w.mutual(t)
}

// https://istio.io/latest/docs/reference/config/networking/destination-rule/#ConnectionPoolSettings-HTTPSettings
const once = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web, namespace: shop}
spec:
  host: web.shop.svc.cluster.local
  trafficPolicy: {connectionPool: {http: {maxRequestsPerConnection: 1}}}
`

// rotation: new files are taken without a restart, for new connections.
func (w *world) rotation(t *testing.T, a *authority.Authority) {
	t.Helper()
	w.write(t, "once.yaml", once)
	a.Issue(t, w.certificates[w.client], spiffe("renamed"))
	wait.For(t, "the client has its new certificate", func() error {
		s, err := w.http()
		if err == nil && !strings.Contains(s.Identity, "URI="+spiffe("renamed")) {
			err = fmt.Errorf("the server knows its client as %q", s.Identity)
		}
		return err
	})
}
