package xds_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/authority"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// guarded is a set whose configuration is for callers of the root namespace: by certificate, or by
// token.
const guarded = `
plugins:
  - {name: files, kind: config, builtin: config/file}
  - {name: mesh, kind: config, builtin: config/mesh}
  - {name: certificates, kind: authenticator, builtin: authenticator/certificate}
  - {name: tokens, kind: authenticator, builtin: authenticator/token, config: {file: tokens.yaml}}
  - {name: api, kind: generator, builtin: generator/api, select: {generator: api}}
`

const token = "a-token-of-thirty-two-characters"

// TestTLS: the server is known by its certificate, and the client by its own, or by a token; both
// are read anew, and who is wrong hears why.
func TestTLS(t *testing.T) {
	t.Parallel()
	a, other := authority.New(t), authority.New(t)
	of, mine, strange := t.TempDir(), t.TempDir(), t.TempDir()
	a.IssueLocal(t, of)
	a.Issue(t, mine, "spiffe://cluster.local/ns/istio-system/sa/coxswain")
	other.Issue(t, strange, "spiffe://cluster.local/ns/istio-system/sa/coxswain")
	in := filepath.Join

	s := &server{dir: t.TempDir()}
	s.put(t, "a.yaml", entry("a", "a"))
	folder := t.TempDir()
	write(t, in(folder, "plugins.yaml"), guarded)
	write(t, in(folder, "tokens.yaml"), fmt.Sprintf("tokens: [{token: %s, identities: [spiffe://cluster.local/ns/istio-system/sa/coxswain]}]\n", token))
	secure := wait.Address(t)
	s.Plane = mesh.Start(t, program, s.dir, "--plugins", in(folder, "plugins.yaml"), "--secureGRPCAddr", secure,
		"--caCertFile", in(of, "root-cert.pem"), "--tlsCertFile", in(of, "cert-chain.pem"), "--tlsKeyFile", in(of, "key.pem"))
	s.Ready(t)

	config := func(ca, cert string, more string) string {
		text := fmt.Sprintf("address: \"xds://%s\", maxRetry: 1s%s, tls: {ca: %q", secure, more, in(ca, "root-cert.pem"))
		if cert != "" {
			text += fmt.Sprintf(", cert: %q, key: %q", in(cert, "cert-chain.pem"), in(cert, "key.pem"))
		}
		return source(text + "}")
	}
	file := in(t.TempDir(), "token")
	write(t, file, token+"\n")
	byCertificate, byToken := plane(t, set(t, config(of, mine, ""))), plane(t, set(t, config(of, "", fmt.Sprintf(", tokenFile: %q", file))))
	for _, p := range []*mesh.Plane{byCertificate, byToken} {
		p.Ready(t)
		hasCluster(t, p, "a", true)
	}
	for _, c := range []struct{ config, says string }{
		{config(of, "", ""), "the server does not answer: Unauthenticated"},
		{config(strange, mine, ""), "certificate signed by unknown authority"},
		{config(of, strange, ""), "unknown certificate authority"},
		{source(fmt.Sprintf("address: %q, maxRetry: 1s", secure)), "the server does not answer"},
	} {
		refused := plane(t, set(t, c.config))
		logged(t, refused, c.says)
		if _, err := refused.Get("/ready"); err == nil {
			t.Errorf("%s: it is ready", c.says)
		}
		refused.Kill()
	}

	// Certificates and tokens are renewed, and count at the next connection.
	other.IssueLocal(t, of)
	other.Issue(t, mine, "spiffe://cluster.local/ns/istio-system/sa/coxswain")
	s.Kill()
	s.put(t, "b.yaml", entry("b", "b"))
	write(t, in(folder, "tokens.yaml"),
		"tokens: [{token: another-token-of-32-characters-xx, identities: [spiffe://cluster.local/ns/istio-system/sa/coxswain]}]\n")
	s.Plane = s.Again(t)
	s.Ready(t)
	hasCluster(t, byCertificate, "b", true)
	shows(t, byToken, true, "the server does not answer", "Unauthenticated")
	hasCluster(t, byToken, "a", true)
	write(t, file, "another-token-of-32-characters-xx")
	hasCluster(t, byToken, "b", true)
	if log := byToken.Log() + byCertificate.Log(); strings.Contains(log, token) || strings.Contains(log, "another-token") {
		t.Error("a token is in the log")
	}
}
