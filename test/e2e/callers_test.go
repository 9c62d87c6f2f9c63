package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// issuer signs tokens.
type issuer struct {
	t    testing.TB
	name string
	key  *ecdsa.PrivateKey
}

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{t, "https://accounts.example", key}
}

// rule is a JWTRule for its tokens.
func (i *issuer) rule() string {
	i.t.Helper()
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: i.key.Public(), KeyID: "1", Use: "sig"}}})
	if err != nil {
		i.t.Fatal(err)
	}
	rule, err := json.Marshal(map[string]any{"issuer": i.name, "audiences": []string{"istio-ca"}, "jwks": string(keys)})
	if err != nil {
		i.t.Fatal(err)
	}
	return string(rule)
}

// token is a good one of shop's web, with other claims in the place of some.
func (i *issuer) token(others ...any) string {
	i.t.Helper()
	claims := map[string]any{"iss": i.name, "aud": "istio-ca", "sub": "system:serviceaccount:shop:web", "exp": time.Now().Add(time.Hour).Unix()}
	for n := 0; n < len(others); n += 2 {
		claims[others[n].(string)] = others[n+1]
	}
	with, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: i.key, KeyID: "1"}}, nil)
	if err != nil {
		i.t.Fatal(err)
	}
	text, err := jwt.Signed(with).Claims(claims).Serialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return text
}

// TestOrderOfCallers: in the built-in set a certificate is looked at first, then a token, then what
// a gateway says. What is bad for one and good for another is good; the first that accepts says who
// it is.
func TestOrderOfCallers(t *testing.T) {
	a, tokens := newAuthority(t), newIssuer(t)
	a.issue("server", &x509.Certificate{DNSNames: []string{"coxswain.test"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	client := func(name string, uris ...string) {
		c := &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		for _, text := range uris {
			u, err := url.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			c.URIs = append(c.URIs, u)
		}
		a.issue(name, c)
	}
	client("web", webID)
	client("cart", "spiffe://cluster.local/ns/shop/sa/cart")
	client("nameless")
	address := wait.Address(t)
	config := t.TempDir()
	place(t, filepath.Join(config, "entry.yaml"), "{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: "+
		"{name: a, namespace: shop}, spec: {hosts: [a.example], ports: [{number: 80, name: http, protocol: HTTP}], "+
		"resolution: DNS}}")
	p := mesh.Start(t, program, config, "--secureGRPCAddr", address, "--tlsCertFile", a.file("server.crt"), "--tlsKeyFile", a.file("server.key"),
		"--caCertFile", a.file("ca.crt"), "--jwtRule", tokens.rule(), "--trustedGatewayCIDR", "192.0.2.0/24")
	p.Ready(t)
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	g := &guarded{Plane: p, t: t}
	calls := func(certificate string, headers ...string) error {
		t.Helper()
		config := &tls.Config{RootCAs: roots, ServerName: "coxswain.test"}
		if certificate != "" {
			pair, err := tls.LoadX509KeyPair(a.file(certificate+".crt"), a.file(certificate+".key"))
			if err != nil {
				t.Fatal(err)
			}
			config.Certificates = []tls.Certificate{pair}
		}
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		ctx, cancel := context.WithTimeout(t.Context(), wait.Deadline)
		defer cancel()
		s, err := discovery.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(metadata.AppendToOutgoingContext(ctx, headers...))
		if err != nil {
			t.Fatal(err)
		}
		g.ask(s, clusters)
		_, err = s.Recv()
		return err
	}
	const forwarded = "x-forwarded-client-cert"
	past := time.Now().Add(-time.Hour).Unix()
	for what, c := range map[string]struct {
		certificate string
		headers     []string
		code        codes.Code
		words       string
	}{
		"a certificate":                   {"web", nil, codes.OK, ""},
		"a token":                         {"", []string{"authorization", "Bearer " + tokens.token()}, codes.OK, ""},
		"what a gateway says":             {"", []string{forwarded, "URI=" + webID}, codes.OK, ""},
		"a bad certificate, a good token": {"nameless", []string{"authorization", "Bearer " + tokens.token()}, codes.OK, ""},
		"a good certificate, a bad token": {"web", []string{"authorization", "Bearer x"}, codes.OK, ""},
		"a bad token, and a gateway":      {"", []string{"authorization", "Bearer x", forwarded, "URI=" + webID}, codes.OK, ""},
		"the first counts": {
			"cart", []string{"authorization", "Bearer " + tokens.token()}, codes.PermissionDenied,
			"but the caller is spiffe://cluster.local/ns/shop/sa/cart",
		},
		"nothing": {
			"", nil, codes.Unauthenticated,
			"certificates: no certificate was shown; jwt: no bearer token was shown; gateways: no header x-forwarded-client-cert was shown",
		},
		"all bad": {
			"nameless", []string{"authorization", "Bearer " + tokens.token("exp", past), forwarded, "x"},
			codes.Unauthenticated,
			"jwt: the token has expired; gateways: the header x-forwarded-client-cert can't be read",
		},
		"another namespace's token": {
			"", []string{"authorization", "Bearer " + tokens.token("sub", "system:serviceaccount:bank:web")},
			codes.PermissionDenied, "ns/bank/sa/web",
		},
		"a foreign domain's certificate": {
			"", []string{forwarded, "URI=spiffe://other.example/ns/shop/sa/web"}, codes.PermissionDenied,
			"none of the mesh's (cluster.local)",
		},
		"another audience, not yet, a wrong": {
			"", []string{"authorization", "Bearer " + newIssuer(t).token("aud", "x")}, codes.Unauthenticated,
			"jwt: the token's signature is wrong",
		},
	} {
		if err := refusal(calls(c.certificate, c.headers...), c.code, c.words); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestTrustDomains: callers of foreign trust domains are refused, until the mesh's settings say
// that a domain is its own, or the setting that all may come.
func TestTrustDomains(t *testing.T) {
	const foreign = "spiffe://other.example/ns/shop/sa/web"
	set := tokenSet + `
- name: mesh
  kind: config
  builtin: config/mesh
  config: {meshConfig: mesh.yaml}
`
	g := guardWith(t, set, map[string]string{"resources/all.yaml": tokenResources, "mesh.yaml": "trustDomain: corp.example"}, "--authPlaintext")
	g.refuses(webToken, codes.PermissionDenied,
		"the caller is "+webID+", of a trust domain that is none of the mesh's (corp.example)", "trustDomainAliases",
		"--foreignTrustDomains")
	g.write("mesh.yaml", "{trustDomain: corp.example, trustDomainAliases: [cluster.local]}")
	wait.For(t, "an alias counts", func() error {
		_, _, err := g.open(webToken)
		return err
	})
	g.tokens("workloads.yaml", newToken, foreign)
	wait.For(t, "the foreign one is known, and refused", func() error {
		_, _, err := g.open(newToken)
		return refusal(err, codes.PermissionDenied, foreign, "(corp.example, cluster.local)")
	})
	open := guardWith(t, set,
		map[string]string{"resources/all.yaml": tokenResources, "mesh.yaml": "trustDomain: corp.example"},
		"--authPlaintext", "--foreignTrustDomains")
	if _, _, err := open.open(webToken); err != nil {
		t.Errorf("all may come, and it is refused: %v", err)
	}
}

// TestFloodOfBadLogins: 10,000 bad logins a minute, for some seconds, are each refused with the
// right code, while others are served, and memory stays bounded.
func TestFloodOfBadLogins(t *testing.T) {
	tokens, stranger := newIssuer(t), newIssuer(t)
	config := t.TempDir()
	place(t, filepath.Join(config, "entry.yaml"), "{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: "+
		"{name: a, namespace: shop}, spec: {hosts: [a.example], ports: [{number: 80, name: http, protocol: HTTP}], "+
		"resolution: DNS}}")
	g := &guarded{t: t, Plane: mesh.Start(t, program, config, "--authPlaintext", "--jwtRule", tokens.rule(), "--maxNewStreamsPerPeer", "0")}
	g.Ready(t)
	g.dial()
	good := tokens.token()
	wait.For(t, "it is served", func() error {
		_, _, err := g.open(good)
		return err
	})
	memory := func() int {
		t.Helper()
		sum := rss(t, g.PID())
		for _, p := range g.Plugins(t) {
			if p.Kind == "authenticator" && p.PID > 0 {
				sum += rss(t, p.PID)
			}
		}
		return sum
	}
	before, spent := memory(), cpu(t, g)
	const rate, seconds = 10000 / 60, 6
	began, slowest := time.Now(), time.Duration(0)
	bad := []struct {
		token string
		code  codes.Code
	}{
		{stranger.token(), codes.Unauthenticated}, {tokens.token("aud", "x"), codes.Unauthenticated}, {tokens.token("exp", 1), codes.Unauthenticated},
		{tokens.token("sub", "system:serviceaccount:bank:web"), codes.PermissionDenied},
		{strings.Repeat("x", 4000), codes.Unauthenticated}, {"", codes.Unauthenticated},
	}
	tick := time.NewTicker(time.Second / rate)
	defer tick.Stop()
	var all sync.WaitGroup
	busy := make(chan struct{}, 16)
	for n := range rate * seconds {
		<-tick.C
		busy <- struct{}{}
		all.Go(func() {
			defer func() { <-busy }()
			s, _, err := g.open(bad[n%len(bad)].token)
			if e := refusal(err, bad[n%len(bad)].code); e != nil {
				t.Errorf("bad login %d: %v", n, e)
			}
			_ = s.CloseSend()
		})
		if n%rate == 0 {
			at := time.Now()
			if _, _, err := g.open(good); err != nil {
				t.Errorf("meanwhile a good one: %v", err)
			}
			slowest = max(slowest, time.Since(at))
		}
	}
	all.Wait()
	after := memory()
	t.Logf("%d bad logins in %s; memory of core and authenticators %d -> %d MB; CPU %s; a good login took %s at most",
		rate*seconds, time.Since(began).Round(time.Second), before>>20, after>>20,
		(cpu(t, g) - spent).Round(10*time.Millisecond), slowest.Round(time.Millisecond))
	if after > before+before/2+32<<20 {
		t.Errorf("memory grew from %d to %d MB", before>>20, after>>20)
	}
}

// rss is a process's resident memory in bytes.
func rss(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	var size, resident int
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * os.Getpagesize()
}

// cpu is what the core and its authenticators have used.
func cpu(t *testing.T, g *guarded) (sum time.Duration) {
	t.Helper()
	pids := []int{g.PID()}
	for _, p := range g.Plugins(t) {
		if p.Kind == "authenticator" && p.PID > 0 {
			pids = append(pids, p.PID)
		}
	}
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		var user, system int
		if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(user+system) * time.Second / 100
	}
	return sum
}
