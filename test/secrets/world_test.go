// Package secrets tests generator/sds and its sources as users run them: the program, real Envoys
// that show who they are, and clients of theirs.
package secrets

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/authority"
	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// program is the path of the binary under test.
var program string

func TestMain(m *testing.M) { mesh.Quick(&program, m.Run) }

const set = `
plugins:
- {name: files, kind: config, builtin: config/file}
- {name: mesh, kind: config, builtin: config/mesh}
- {name: istio, kind: generator, builtin: generator/istio}
- {name: sds, kind: generator, builtin: generator/sds, start: onDemand}
- {name: certificates, kind: authenticator, builtin: authenticator/certificate}
`

const gateway = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: gateway, namespace: NAMESPACE}
spec:
  selector: {istio: ingressgateway}
  servers:
  - {port: {number: HTTPPORT, name: http, protocol: HTTP}, bind: 127.0.0.1, hosts: ["*"]}
  - port: {number: HTTPSPORT, name: https, protocol: HTTPS}
    bind: 127.0.0.1
    hosts: ["*"]
    tls: {mode: SIMPLE, credentialName: web}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: NAMESPACE}
spec:
  hosts: ["*"]
  gateways: [gateway]
  http: [{directResponse: {status: 200, body: {string: fine}}}]
`

// world is a control plane with a secure port.
type world struct {
	authority *authority.Authority
	plane     *mesh.Plane
	dir       string // the configuration's
	certs     string // where files with certificates are, a folder each
	address   string // of the secure port
}

func newWorld(t *testing.T, files map[string]string) *world { return newWorldOf(t, set, files) }

// newWorldOf starts one with another set.
func newWorldOf(t *testing.T, set string, files map[string]string) *world {
	t.Helper()
	return newWorldBy(t, files, func(*world) string { return set })
}

// newWorldBy is newWorldOf where what plugins.yaml says needs something of the world.
func newWorldBy(t *testing.T, files map[string]string, set func(*world) string) *world {
	t.Helper()
	envoy.Binary(t) // or skip
	w := &world{authority: authority.New(t), dir: t.TempDir(), certs: t.TempDir(), address: wait.Address(t)}
	for name, text := range files {
		put(t, filepath.Join(w.dir, name), text)
	}
	plugins := filepath.Join(t.TempDir(), "plugins.yaml")
	put(t, plugins, set(w))
	own := w.folder(t, "plane")
	w.authority.IssueLocal(t, own)
	w.plane = mesh.Start(t, program, w.dir, "--plugins", plugins, "--secureGRPCAddr", w.address,
		"--tlsCertFile", own+"/cert-chain.pem", "--tlsKeyFile", own+"/key.pem", "--caCertFile", own+"/root-cert.pem")
	w.plane.Ready(t)
	return w
}

func (w *world) folder(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(w.certs, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// gateway starts an Envoy of an account, by its certificate.
func (w *world) gateway(t *testing.T, namespace, account, protocol string) *envoy.Envoy {
	t.Helper()
	own := w.folder(t, namespace+"."+account)
	w.authority.Issue(t, own, fmt.Sprintf("spiffe://cluster.local/ns/%s/sa/%s", namespace, account))
	admin, name := wait.Address(t), account+"-"+protocol
	return envoy.Start(t, name, admin, w.plane.Bootstrap(t, "--name", name, "--namespace", namespace, "--metadata", "SERVICE_ACCOUNT="+account,
		"--type", "router", "--ip", "127.0.0.21", "--labels", "istio=ingressgateway", "--protocol", protocol, "--admin", admin, "--xds", w.address,
		"--xdsCA", own+"/root-cert.pem", "--xdsCert", own+"/cert-chain.pem", "--xdsKey", own+"/key.pem"))
}

// pair is a certificate with its key, for a server at 127.0.0.1.
type pair struct{ chain, key, roots []byte }

func (w *world) pair(t *testing.T, name string) pair {
	t.Helper()
	dir := w.folder(t, name)
	w.authority.IssueLocal(t, dir)
	return pair{read(t, dir+"/cert-chain.pem"), read(t, dir+"/key.pem"), read(t, dir+"/root-cert.pem")}
}

// secret is a Secret of type kubernetes.io/tls.
func (p pair) secret(namespace, name string) string {
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: %s}\ntype: kubernetes.io/tls\ndata:\n  tls.crt: %s\n  tls.key: %s\n",
		name, namespace, encode(p.chain), encode(p.key))
}

// client trusts a pair's roots.
type client struct {
	http *http.Client
	port int
}

func (p pair) client(t *testing.T, port int, keep bool) client {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(p.roots) {
		t.Fatal("no roots")
	}
	transport := &http.Transport{DisableKeepAlives: !keep, TLSClientConfig: &tls.Config{RootCAs: pool}}
	t.Cleanup(transport.CloseIdleConnections)
	return client{&http.Client{Transport: transport, Timeout: 20 * time.Second}, port}
}

// ask returns the serial number of the certificate that the server shows, in hexadecimal.
func (c client) ask() (string, error) {
	r, err := c.http.Get(fmt.Sprintf("https://127.0.0.1:%d/", c.port))
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Body.Close() }()
	body, err := io.ReadAll(r.Body)
	if err == nil && string(body) != "fine" {
		err = fmt.Errorf("status %d: %s", r.StatusCode, body)
	}
	return r.TLS.PeerCertificates[0].SerialNumber.Text(16), err
}

// shows waits until a server shows a pair.
func (c client) shows(t *testing.T, p pair) {
	t.Helper()
	own, err := tls.X509KeyPair(p.chain, p.key)
	if err != nil {
		t.Fatal(err)
	}
	want := own.Leaf.SerialNumber.Text(16)
	wait.For(t, "the server shows certificate "+want, func() error {
		got, err := c.ask()
		if err == nil && got != want {
			err = fmt.Errorf("it shows %s", got)
		}
		return err
	})
}

// plain asks by plain HTTP.
func plain(port int) error {
	target := mesh.Target{Address: net.JoinHostPort("127.0.0.1", fmt.Sprint(port)), Host: "web.example", Path: "/"}
	code, body, err := target.Ask(context.Background())
	if err == nil && body != "fine" {
		err = fmt.Errorf("%d: %s", code, body)
	}
	return err
}

func fill(text string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(text) }

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// put replaces a file at once.
func put(t *testing.T, path, text string) {
	t.Helper()
	next := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}
