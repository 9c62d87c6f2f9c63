package identity

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/envoy"
	"github.com/coxswain-mesh/coxswain/test/need"
	"github.com/coxswain-mesh/coxswain/test/page"
	"github.com/coxswain-mesh/coxswain/test/program"
	"github.com/coxswain-mesh/coxswain/test/wait"
)

// agent is Istio's pilot-agent, unpatched, with a stock Envoy that it runs.
type agent struct {
	*program.Process
	dir string
	// admin is Envoy's.
	admin string
}

// workload is who an agent is for.
type workload struct {
	name, ip, account, token string
	labels                   map[string]string
	// env is added to the agent's environment.
	env []string
}

func port(address string) int {
	_, text, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(text)
	return n
}

// agent starts one, which believes the control plane by some roots in PEM.
func (w *world) agent(t *testing.T, of workload, roots []byte) *agent {
	t.Helper()
	bin := program.Built(t, "test/peer", "peer", "pilot-agent")
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "istio.io/istio")
	list.Dir = "../peer"
	module, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	a := &agent{dir: t.TempDir(), admin: wait.Address(t)}
	secrets := filepath.Join(a.dir, "var/run/secrets")
	for path, text := range map[string][]byte{"tokens/istio-token": []byte(of.token), "istio/root-cert.pem": roots} {
		path = filepath.Join(secrets, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	config, err := json.Marshal(map[string]any{
		"discoveryAddress": "localhost:" + strconv.Itoa(port(w.Secure)), "binaryPath": envoy.Binary(t), "configPath": "./etc/istio/proxy",
		"proxyBootstrapTemplatePath": filepath.Join(strings.TrimSpace(string(module)), "tools/packaging/common/envoy_bootstrap.json"),
		"statusPort":                 port(wait.Address(t)), "proxyAdminPort": port(a.admin),
	})
	if err != nil {
		t.Fatal(err)
	}
	labels, err := json.Marshal(of.labels)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(bin, "pilot-agent"), "proxy", "sidecar", "--domain", "shop.svc.cluster.local", "--proxyLogLevel=warning", "--log_output_level=default:info")
	cmd.Dir = a.dir
	cmd.Env = append(os.Environ(), "PROXY_CONFIG="+string(config), "POD_NAME="+of.name, "POD_NAMESPACE=shop", "INSTANCE_IP="+of.ip, "SERVICE_ACCOUNT="+of.account,
		"ISTIO_META_CLUSTER_ID=Kubernetes", "TRUST_DOMAIN=cluster.local", "ISTIO_META_INTERCEPTION_MODE=NONE", "ISTIO_METAJSON_LABELS="+string(labels),
		"ENVOY_STATUS_PORT="+strconv.Itoa(port(wait.Address(t))), "ENVOY_PROMETHEUS_PORT="+strconv.Itoa(port(wait.Address(t))), "EXIT_ON_ZERO_ACTIVE_CONNECTIONS=true")
	cmd.Env = append(cmd.Env, of.env...)
	a.Process = program.Start(t, cmd)
	t.Cleanup(func() { // its Envoy would outlive an agent that is killed
		if r, err := http.Post("http://"+a.admin+"/quitquitquit", "", nil); err == nil {
			_ = r.Body.Close()
		}
	})
	return a
}

// certificate is one that Envoy has, as /certs shows it.
type certificate struct {
	Serial string `json:"serial_number"`
	Names  []struct {
		URI string `json:"uri"`
	} `json:"subject_alt_names"`
}

// certificates are those that Envoy has of its own, and the authorities that it believes.
func (a *agent) certificates() (own, believed []certificate, err error) {
	text, err := page.Get(a.admin, "/certs")
	if err != nil {
		return nil, nil, err
	}
	var all struct {
		Certificates []struct {
			CA    []certificate `json:"ca_cert"`
			Chain []certificate `json:"cert_chain"`
		}
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, nil, err
	}
	for _, c := range all.Certificates {
		own, believed = append(own, c.Chain...), append(believed, c.CA...)
	}
	return own, believed, nil
}

// is waits until all of Envoy's own certificates are of an identity, and returns the serial number of the first.
func (a *agent) is(t *testing.T, identity, other string) (serial string) {
	t.Helper()
	wait.For(t, "its Envoy has a certificate of "+identity, func() error {
		own, _, err := a.certificates()
		switch {
		case !a.Runs():
			t.Fatalf("the agent has ended: %s", a.Last())
		case err != nil:
			return err
		case len(own) == 0:
			return errors.New("it has none")
		}
		for _, c := range own {
			if len(c.Names) != 1 || c.Names[0].URI != identity || c.Serial == other {
				return fmt.Errorf("it has one of %v, number %s", c.Names, c.Serial)
			}
		}
		serial = own[0].Serial
		return nil
	})
	return serial
}

// TestAgent: pilot-agent gets a certificate with a token of a file from a CA that signs itself, its Envoy is served by it and by
// the control plane, and the certificate is renewed.
func TestAgent(t *testing.T) {
	need.All(t)
	w := start(t, nil)
	w.put(t, "config/mesh.yaml", mutual(wait.Port(t), 80, wait.Port(t)))
	a := w.agent(t, workload{
		name: "web-1", ip: "127.0.0.2", account: "web", token: webToken, labels: map[string]string{"app": "web"}, env: []string{"SECRET_TTL=10s"},
	}, w.rootsText(t))
	first := a.is(t, web, "")
	a.is(t, web, first)
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
			// A connection each, so that each request is a handshake of its client's Envoy with this one, at most.
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

// TestMutual: two workloads with agents speak mutual TLS, STRICT, while leaves, an intermediate CA and the root change; no request fails.
func TestMutual(t *testing.T) {
	need.All(t)
	app := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(out, r.Header.Get("X-Forwarded-Client-Cert"))
	}))
	t.Cleanup(app.Close)
	inbound, outbound := wait.Port(t), wait.Port(t)
	root := newRoot(t)
	w := start(t, func(dir string) { plug(t, dir, below(t, root)) })
	w.put(t, "config/mesh.yaml", mutual(inbound, port(app.Listener.Addr().String()), outbound))
	w.put(t, "tokens.yaml", strings.Replace(tokens, "tokens:", "tokens:\n- {token: "+clientToken+", identities: ["+client+"]}", 1))
	env := []string{"SECRET_TTL=12s"}
	text := root.roots
	server := w.agent(t, workload{name: "web-1", ip: "127.0.0.2", account: "web", token: webToken, labels: map[string]string{"app": "web"}, env: env}, text)
	caller := w.agent(t, workload{name: "client-1", ip: "127.0.0.3", account: "client", token: clientToken, labels: map[string]string{"app": "client"}, env: env}, text)
	first := server.is(t, web, "")
	caller.is(t, client, "")
	url := "http://127.0.0.1:" + strconv.Itoa(outbound)
	wait.For(t, "a request arrives", func() error { return get(http.DefaultClient, url) })
	if err := get(&http.Client{Timeout: 5 * time.Second}, "http://127.0.0.2:"+strconv.Itoa(inbound)); err == nil {
		t.Error("plain text is taken")
	}

	x := &traffic{}
	x.begin(t, url)
	second := server.is(t, web, first) // the leaf
	plug(t, w.dir, below(t, root))     // the intermediate
	third := server.is(t, web, second)
	other := newRoot(t)
	plug(t, w.dir, withRoots(below(t, root), other)) // both roots are believed before the other one signs
	believes(t, server, 2)
	believes(t, caller, 2)
	plug(t, w.dir, withRoots(below(t, other), root))
	fourth := server.is(t, web, third)
	caller.is(t, client, "")
	server.is(t, web, fourth)
	x.end()
	if n := x.failed.Load(); n > 0 {
		t.Errorf("%d of %d requests failed, the first with %s", n, x.sent.Load(), *x.first.Load())
	}
	t.Logf("%d requests, no failure", x.sent.Load())
}

// believes waits until an agent's Envoy believes so many authorities.
func believes(t *testing.T, a *agent, n int) {
	t.Helper()
	wait.For(t, fmt.Sprintf("its Envoy believes %d roots", n), func() error {
		_, believed, err := a.certificates()
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

// mutual is the configuration with ports: that of the server's Envoy, of the server, and of the client's Envoy.
func mutual(inbound, app, outbound int) string {
	return fmt.Sprintf(mutualConfig, outbound, inbound, inbound, app, outbound)
}

// mutualConfig has a service whose one workload listens for mutual TLS alone, and what its client's Envoy listens on.
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
