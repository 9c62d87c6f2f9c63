package identity

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/agent"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// agent starts pilot-agent for a workload, which believes the control plane by some roots in PEM.
func (w *world) agent(t *testing.T, of agent.Workload, roots []byte) *agent.Agent {
	t.Helper()
	of.Namespace, of.Discovery, of.Roots = "shop", w.Secure, roots
	of.Env = append(of.Env, "ISTIO_META_INTERCEPTION_MODE=NONE")
	return agent.Start(t, of)
}

// TestAgent: pilot-agent gets a certificate with a token of a file from a CA that signs itself, its
// Envoy is served by it and by the control plane, and the certificate is renewed.
func TestAgent(t *testing.T) {
	need.All(t)
	w := start(t, nil)
	w.put(t, "config/mesh.yaml", mutual(wait.Port(t), 80, wait.Port(t)))
	a := w.agent(t, agent.Workload{
		Name: "web-1", IP: "127.0.0.2", Account: "web", Token: webToken, Labels: map[string]string{"app": "web"},
		Env: []string{"SECRET_TTL=10s"},
	}, w.rootsText(t))
	first := a.Is(t, web, "")
	a.Is(t, web, first)
	w.log(t, webToken)
}

// rootsText are the roots of the CA that signs itself, in PEM.
func (w *world) rootsText(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, "state/ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// traffic makes requests until the test ends, and counts those that fail.
type traffic struct {
	done         chan struct{}
	wg           sync.WaitGroup
	sent, failed atomic.Int64
	first        atomic.Pointer[string]
}

func (x *traffic) begin(t *testing.T, url string) {
	x.done = make(chan struct{})
	for range 2 {
		x.wg.Go(func() {
			// A connection each, so that each request is a handshake of its client's Envoy with
			// this one, at most.
			client := http.Client{Timeout: 10 * time.Second}
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-x.done:
					return
				case <-tick.C:
				}
				x.sent.Add(1)
				if err := get(&client, url); err != nil {
					x.failed.Add(1)
					text := err.Error()
					x.first.CompareAndSwap(nil, &text)
				}
			}
		})
	}
	t.Cleanup(x.end)
}

func (x *traffic) end() {
	select {
	case <-x.done:
	default:
		close(x.done)
	}
	x.wg.Wait()
}

func get(client *http.Client, url string) error {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	r.Host = "web.shop.svc.cluster.local"
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

// TestMutual: two workloads with agents speak mutual TLS, STRICT, while leaves, an intermediate CA
// and the root change; no request fails.
func TestMutual(t *testing.T) {
	need.All(t)
	app := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(out, r.Header.Get("X-Forwarded-Client-Cert"))
	}))
	t.Cleanup(app.Close)
	inbound, outbound := wait.Port(t), wait.Port(t)
	root := newRoot(t)
	w := start(t, func(dir string) { plug(t, dir, below(t, root)) })
	w.put(t, "config/mesh.yaml", mutual(inbound, agent.Port(app.Listener.Addr().String()), outbound))
	w.put(t, "tokens.yaml", strings.Replace(tokens, "tokens:", "tokens:\n- {token: "+clientToken+", identities: ["+client+"]}", 1))
	env := []string{"SECRET_TTL=12s"}
	text := root.roots
	server := w.agent(t,
		agent.Workload{Name: "web-1", IP: "127.0.0.2", Account: "web", Token: webToken, Labels: map[string]string{"app": "web"}, Env: env},
		text)
	caller := w.agent(t,
		agent.Workload{Name: "client-1", IP: "127.0.0.3", Account: "client", Token: clientToken, Labels: map[string]string{"app": "client"}, Env: env},
		text)
	first := server.Is(t, web, "")
	caller.Is(t, client, "")
	url := "http://127.0.0.1:" + strconv.Itoa(outbound)
	wait.For(t, "a request arrives", func() error { return get(http.DefaultClient, url) })
	if err := get(&http.Client{Timeout: 5 * time.Second}, "http://127.0.0.2:"+strconv.Itoa(inbound)); err == nil {
		t.Error("plain text is taken")
	}

	x := &traffic{}
	x.begin(t, url)
	second := server.Is(t, web, first) // the leaf
	plug(t, w.dir, below(t, root))     // the intermediate
	third := server.Is(t, web, second)
	other := newRoot(t)
	plug(t, w.dir, withRoots(below(t, root), other)) // both roots are believed before the other one signs
	believes(t, server, 2)
	believes(t, caller, 2)
	plug(t, w.dir, withRoots(below(t, other), root))
	fourth := server.Is(t, web, third)
	caller.Is(t, client, "")
	server.Is(t, web, fourth)
	x.end()
	if n := x.failed.Load(); n > 0 {
		t.Errorf("%d of %d requests failed, the first with %s", n, x.sent.Load(), *x.first.Load())
	}
	t.Logf("%d requests, no failure", x.sent.Load())
}

// believes waits until an agent's Envoy believes so many authorities.
func believes(t *testing.T, a *agent.Agent, n int) {
	t.Helper()
	wait.For(t, fmt.Sprintf("its Envoy believes %d roots", n), func() error {
		_, believed, err := a.Certificates()
		if err != nil {
			return err
		}
		serials := map[string]bool{}
		for _, c := range believed {
			serials[c.Serial] = true
		}
		if len(serials) < n {
			return fmt.Errorf("it believes %v", serials)
		}
		return nil
	})
}

// parse returns the roots of a file of the CA's.
func parse(text []byte) ([]byte, error) {
	var roots []byte
	for _, part := range strings.SplitAfter(string(text), "-----END CERTIFICATE-----\n") {
		if i := strings.Index(part, "-----BEGIN CERTIFICATE-----"); i >= 0 {
			roots = append(roots, part[i:]...)
		}
	}
	if roots == nil {
		return nil, errors.New("the CA's file has no certificate")
	}
	return roots, nil
}

const (
	clientToken = "client-token-0123456789"
	client      = "spiffe://cluster.local/ns/shop/sa/client"
)

// mutual is the configuration with ports: that of the server's Envoy, of the server, and of the
// client's Envoy.
func mutual(inbound, app, outbound int) string {
	return fmt.Sprintf(mutualConfig, outbound, inbound, inbound, app, outbound)
}

// mutualConfig has a service whose one workload listens for mutual TLS alone, and what its client's
// Envoy listens on.
const mutualConfig = `
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: default, namespace: istio-system}
spec: {mtls: {mode: STRICT}}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.shop.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: %d, name: http, protocol: HTTP, targetPort: %d}]
  workloadSelector: {labels: {app: web}}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: web-1, namespace: shop}
spec: {address: 127.0.0.2, serviceAccount: web, labels: {app: web, security.istio.io/tlsMode: istio}}
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: web, namespace: shop}
spec:
  workloadSelector: {labels: {app: web}}
  ingress:
  - port: {number: %d, protocol: HTTP, name: http}
    bind: 127.0.0.2
    captureMode: NONE
    defaultEndpoint: 127.0.0.1:%d
  egress:
  - hosts: ["~/*"]
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: client, namespace: shop}
spec:
  workloadSelector: {labels: {app: client}}
  egress:
  - port: {number: %d, protocol: HTTP, name: http}
    bind: 127.0.0.1
    captureMode: NONE
    hosts: ["./*"]
---
# A connection for each request, so that certificates that change are used at once.
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web, namespace: shop}
spec:
  host: web.shop.svc.cluster.local
  trafficPolicy: {connectionPool: {http: {maxRequestsPerConnection: 1}}}
`
