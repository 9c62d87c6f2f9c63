package traffic

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/coxswain-mesh/coxswain/sdk/simulator"
	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/scenario"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// world is a control plane with two gateways and what stands behind it. What is exported may stand
// in configuration.
type world struct {
	// Gateway is its port for HTTP, Passthrough the one for TLS that isn't opened, Second that of
	// another gateway, Edge that of one that serves a Gateway of the Gateway API, Ingress that of
	// one that serves Ingresses.
	Gateway, Passthrough, Second, Edge, Ingress int
	// V1 and V2 are versions of a service; Near, Far and Failing (with 503) stand in different
	// places; Secure speaks TLS.
	V1, V2, Near, Far, Failing, Secure int
	// Roots is a file that has the certificate of Secure's authority.
	Roots string
	// Module is a filter's file.
	Module string
	// JWKS has the key of tokens.
	JWKS string
	// AuthorizeHTTP and AuthorizeGRPC are the ports of servers that authorize, Spans that of a
	// collector.
	AuthorizeHTTP, AuthorizeGRPC, Spans int

	backends *backends
	secure   *httptest.Server
	issuer   *issuer

	gateway, second, edge, ingress *envoy.Envoy
	// walks are what the control plane has for them.
	walks map[*envoy.Envoy]*simulator.Config
}

func newWorld(t *testing.T, all []scenario.Scenario, module string) *world {
	t.Helper()
	envoy.Binary(t) // or skip
	b := newBackends(t)
	w := &world{
		Gateway: wait.Port(t), Passthrough: wait.Port(t), Second: wait.Port(t), Edge: wait.Port(t),
		Ingress: wait.Port(t), backends: b, issuer: newIssuer(t), secure: b.secure(t, "secure"),
		V1: b.start(t, "v1"), V2: b.start(t, "v2"), Near: b.start(t, "near"), Far: b.start(t, "far"), Failing: b.start(t, "failing"),
		Module: module, AuthorizeHTTP: authorizeHTTP(t), AuthorizeGRPC: authorizeGRPC(t), Spans: b.start(t, "spans"),
	}
	dir := t.TempDir()
	w.Secure = w.secure.Listener.Addr().(*net.TCPAddr).Port
	w.Roots = filepath.Join(dir, "roots.pem")
	put(t, w.Roots, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.secure.Certificate().Raw})))
	w.JWKS = w.issuer.keys()
	config := filepath.Join(dir, "config")
	if err := os.Mkdir(config, 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(config, "shared.yaml"), w.fill(t, "shared", read(t, "testdata/shared/resources.yaml")))
	for _, s := range all {
		put(t, filepath.Join(config, strings.ReplaceAll(s.Name, " ", "-")+".yaml"), w.fill(t, s.Name, s.Config))
	}
	settings := filepath.Join(dir, "mesh.yaml")
	put(t, settings, w.fill(t, "mesh", read(t, "testdata/shared/mesh.yaml")))
	plane := mesh.Start(t, program, config, "--meshConfig", settings)
	plane.Ready(t)
	w.walks = map[*envoy.Envoy]*simulator.Config{}
	w.gateway = w.start(t, plane, "gateway", "istio=ingressgateway", "sotw")
	w.second = w.start(t, plane, "second", "istio=second", "delta")
	w.edge = w.start(t, plane, "edge", "gateway.networking.k8s.io/gateway-name=edge", "delta")
	w.ingress = w.start(t, plane, "ingress", "istio=ingress", "delta")
	return w
}

// start starts an Envoy as a gateway with a label.
func (w *world) start(t *testing.T, plane *mesh.Plane, name, label, protocol string) *envoy.Envoy {
	t.Helper()
	at, ip := wait.Address(t), "127.0.0.31"
	if name == "ingress" { // a service leads to it
		ip = "127.0.0.32"
	}
	bootstrap := plane.Bootstrap(t, "--type", "router", "--name", name, "--namespace", "test", "--ip", ip,
		"--labels", label, "--locality", "here/a", "--protocol", protocol, "--admin", at)
	e := envoy.Start(t, name, at, bootstrap)
	e.Ready(t)
	config, err := simulator.Read(plane.Dump(t, bootstrap))
	if err != nil {
		t.Fatal(err)
	}
	w.walks[e] = config
	return e
}

// fill puts the world's ports and files into a text.
func (w *world) fill(t *testing.T, name, text string) string {
	t.Helper()
	var b strings.Builder
	tmpl, err := template.New(name).Option("missingkey=error").Parse(text)
	if err == nil {
		err = tmpl.Execute(&b, w)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// tls is for clients whose connections are passed through.
func (w *world) tls() *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(w.secure.Certificate())
	return &tls.Config{RootCAs: roots}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
