package ca

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/controller/ca/authority"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/plugins/shared/bundle"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	security "istio.io/api/security/v1alpha1"
)

const web = "spiffe://cluster.local/ns/shop/sa/web"

// started is a CA in a folder of its own.
func started(t *testing.T, config string) *plugintest.Harness {
	t.Helper()
	h := plugintest.Start(t, Plugin(), []byte(config))
	h.Commit()
	h.WaitSynced()
	return h
}

func newKey(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func encoded(t *testing.T, m *security.IstioCertificateRequest, dns ...string) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: dns}, newKey(t))
	if err != nil {
		t.Fatal(err)
	}
	m.Csr = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	text, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// signed has a certificate made, and checks that it leads to one of the roots of the table.
func signed(t *testing.T, h *plugintest.Harness, call *pb.Call) (leaf *x509.Certificate, chain []string) {
	t.Helper()
	call.Method = security.IstioCertificateService_CreateCertificate_FullMethodName
	called := h.Call(call)
	if called.Code != 0 {
		t.Fatalf("code %d: %s", called.Code, called.Message)
	}
	m := &security.IstioCertificateResponse{}
	if err := proto.Unmarshal(called.Response, m); err != nil {
		t.Fatal(err)
	}
	certs, between := parsed(t, m.CertChain...), x509.NewCertPool()
	for _, c := range parsed(t, m.CertChain[1:len(m.CertChain)-1]...) {
		between.AddCert(c)
	}
	if _, err := certs[0].Verify(x509.VerifyOptions{
		Roots: roots(t, h), Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}); err != nil {
		t.Error(err)
	}
	return certs[0], m.CertChain
}

func parsed(t *testing.T, texts ...string) (all []*x509.Certificate) {
	t.Helper()
	ders, err := bundle.DER(texts)
	if err != nil {
		t.Fatal(err)
	}
	for _, der := range ders {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// rootsOf are those of the table's row.
func rootsOf(t *testing.T, rows map[string]*sdk.Row) []string {
	t.Helper()
	for _, r := range rows {
		b, err := bundle.Parse(r.Payload)
		if err != nil {
			t.Fatal(err)
		}
		return b.Certificates
	}
	t.Fatal("there is no row")
	return nil
}

func roots(t *testing.T, h *plugintest.Harness) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	for _, c := range parsed(t, rootsOf(t, h.Rows(bundle.Table))...) {
		pool.AddCert(c)
	}
	return pool
}

// TestOwn: the CA of a file is the same after a start, and the core's names count for the core
// alone.
func TestOwn(t *testing.T) {
	t.Chdir(t.TempDir())
	const config = `{"keep": "file", "file": "state/ca.pem"}`
	h := started(t, config)
	before := rootsOf(t, h.Rows(bundle.Table))
	leaf, _ := signed(t, h, &pb.Call{
		Identities: []string{web, "example.com", "spiffe://else/ns/a/sa/b"},
		Request:    encoded(t, &security.IstioCertificateRequest{ValidityDuration: 3600}, "a.example"),
	})
	if len(leaf.URIs) != 1 || leaf.URIs[0].String() != web || len(leaf.DNSNames) > 0 || time.Until(leaf.NotAfter) > time.Hour {
		t.Errorf("%v, %v, %v", leaf.URIs, leaf.DNSNames, leaf.NotAfter)
	}
	leaf, _ = signed(t, h, &pb.Call{Core: true, Request: encoded(t, &security.IstioCertificateRequest{}, "istiod.istio-system.svc")})
	if len(leaf.URIs) > 0 || len(leaf.DNSNames) != 1 {
		t.Errorf("%v, %v", leaf.URIs, leaf.DNSNames)
	}
	if err := h.Drain(); err != nil {
		t.Fatal(err)
	}
	if now := rootsOf(t, started(t, config).Rows(bundle.Table)); now[0] != before[0] {
		t.Error("it is another CA after a start")
	}
}

// TestNextRoot: when the root's end is near the next has the same key, and both are believed.
func TestNextRoot(t *testing.T) {
	t.Chdir(t.TempDir())
	old, err := authority.Root("cluster.local", nil, 2048, time.Hour, time.Now().Add(-50*time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	keep(t, "ca.pem", old)
	h := started(t, `{"keep": "file", "file": "ca.pem"}`)
	now := parsed(t, rootsOf(t, h.Rows(bundle.Table))...)
	if len(now) != 2 || !now[1].Equal(old.Certificate) || time.Until(now[0].NotAfter) < 24*time.Hour {
		t.Fatalf("%d roots, the first until %v", len(now), now[0].NotAfter)
	}
	leaf, _ := signed(t, h, &pb.Call{Identities: []string{web}, Request: encoded(t, &security.IstioCertificateRequest{})})
	pool := x509.NewCertPool()
	pool.AddCert(old.Certificate)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool}); err != nil {
		t.Errorf("who believes the old root alone does not believe what the next signs: %v", err)
	}
}

// TestGone: a file that is deleted while the CA runs comes back as it was, and one that is broken
// changes nothing.
func TestGone(t *testing.T) {
	t.Chdir(t.TempDir())
	h := started(t, `{"keep": "file", "file": "ca.pem", "root": {"check": "1s"}}`)
	before, err := os.ReadFile("ca.pem")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove("ca.pem"); err != nil {
		t.Fatal(err)
	}
	h.WaitLog(func(_ sdk.Level, text string, _ map[string]string) bool {
		return strings.Contains(text, "it is put back")
	})
	if after, err := os.ReadFile("ca.pem"); err != nil || string(after) != string(before) {
		t.Errorf("it is another CA: %v", err)
	}
	if err := os.WriteFile("ca.pem", []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.WaitLog(func(level sdk.Level, _ string, fields map[string]string) bool {
		return level == sdk.Warn && strings.Contains(fields["error"], "holds no CA")
	})
	signed(t, h, &pb.Call{Identities: []string{web}, Request: encoded(t, &security.IstioCertificateRequest{})})
}

func keep(t *testing.T, path string, a *authority.Authority) {
	t.Helper()
	f, err := a.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := file(path).save(context.Background(), f); err != nil {
		t.Fatal(err)
	}
}

// plug puts a CA into the directory `cacerts`, at once.
func plug(t *testing.T, a *authority.Authority) {
	t.Helper()
	f, err := a.Encode()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(".", "made")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"ca-cert.pem": f.Certificate, "ca-key.pem": f.Key, "cert-chain.pem": f.Chain, "root-cert.pem": f.Roots} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.RemoveAll("cacerts"), os.Rename(dir, "cacerts")); err != nil {
		t.Fatal(err)
	}
}

// below makes a CA that another one signs.
func below(t *testing.T, root *authority.Authority) *authority.Authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: root.Certificate.SerialNumber, Subject: root.Certificate.Subject,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	template.Subject.CommonName = "intermediate"
	der, err := x509.CreateCertificate(rand.Reader, template, root.Certificate, key.Public(), root.Key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority.Authority{Certificate: c, Key: key, Chain: []*x509.Certificate{c}, Roots: root.Roots}
}

// TestPlugged: a CA that is plugged in signs, another one takes its place while it runs, and one
// that is broken changes nothing.
func TestPlugged(t *testing.T) {
	t.Chdir(t.TempDir())
	root, err := authority.Root("acme", nil, 2048, time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	plug(t, below(t, root))
	h := started(t, `{"plugged": "cacerts"}`)
	call := func() *pb.Call {
		return &pb.Call{Identities: []string{web}, Request: encoded(t, &security.IstioCertificateRequest{})}
	}
	leaf, chain := signed(t, h, call())
	if len(chain) != 3 || leaf.NotAfter.After(time.Now().Add(time.Hour)) {
		t.Errorf("a chain of %d, until %v", len(chain), leaf.NotAfter)
	}
	if err := os.WriteFile("cacerts/ca-key.pem", []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.WaitLog(func(level sdk.Level, text string, fields map[string]string) bool {
		return level == sdk.Warn && strings.Contains(fields["error"], "key that can't be read")
	})
	signed(t, h, call())
	next, err := authority.Root("acme", nil, 2048, time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	next.Roots = append(next.Roots, root.Roots...)
	plug(t, next)
	h.WaitRows(bundle.Table, func(rows map[string]*sdk.Row) bool { return len(rootsOf(t, rows)) == 2 })
	h.WaitLog(func(_ sdk.Level, text string, _ map[string]string) bool {
		return text == "another CA signs from now on"
	})
	if leaf, _ := signed(t, h, call()); leaf.Issuer.CommonName != "" {
		t.Errorf("it is signed by %v", leaf.Issuer)
	}
}

// TestPluggedMeanwhile: a CA that comes while the one before it is read at the start takes its
// place.
func TestPluggedMeanwhile(t *testing.T) {
	t.Chdir(t.TempDir())
	root, err := authority.Root("acme", nil, 2048, time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	plug(t, root)
	f, err := root.Encode()
	if err != nil {
		t.Fatal(err)
	}
	next, err := authority.Root("acme", nil, 2048, time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	// Whoever reads the roots, which are read last, waits until they are written.
	const pipe = "cacerts/root-cert.pem"
	pour := func(then func()) {
		w, err := os.OpenFile(pipe, os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		then()
		_, err = w.Write(f.Roots)
		if err := errors.Join(err, w.Close()); err != nil {
			t.Error(err)
		}
	}
	another := func() {
		if err := errors.Join(os.Remove(pipe), syscall.Mkfifo(pipe, 0o600)); err != nil {
			t.Error(err)
		}
	}
	another()
	var poured sync.WaitGroup
	defer poured.Wait()
	poured.Go(func() {
		pour(another)                  // when it is configured
		pour(func() { plug(t, next) }) // when it runs
	})
	h := started(t, `{"plugged": "cacerts"}`)
	h.WaitLog(func(_ sdk.Level, text string, _ map[string]string) bool {
		return text == "another CA signs from now on"
	})
}

// TestBroken: what can't be used is an error at the start, with its place and without its key.
func TestBroken(t *testing.T) {
	root, err := authority.Root("acme", nil, 2048, time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	f, err := root.Encode()
	if err != nil {
		t.Fatal(err)
	}
	ended, err := authority.Root("acme", root.Key, 0, time.Hour, time.Now().Add(-2*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	other, err := authority.Root("acme", nil, 2048, time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		edit func()
		want string
	}{
		"no certificate":   {func() { _ = os.Remove("cacerts/ca-cert.pem") }, "not complete"},
		"no root":          {func() { _ = os.Remove("cacerts/root-cert.pem") }, "not complete"},
		"another key":      {func() { put(t, "ca-key.pem", encode(t, other).Key) }, "not that of the certificate"},
		"another root":     {func() { put(t, "root-cert.pem", encode(t, other).Roots) }, "does not lead to the root"},
		"a leaf":           {func() { put(t, "ca-cert.pem", f.Key) }, "something else"},
		"what has ended":   {func() { put(t, "ca-cert.pem", encode(t, ended).Certificate) }, "has ended"},
		"an empty chain":   {func() { put(t, "cert-chain.pem", []byte("x")) }, "something else"},
		"nothing in a key": {func() { put(t, "ca-key.pem", nil) }, "no private key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			plug(t, root)
			c.edit()
			config := defaults()
			config.Plugged = "cacerts"
			_, err := New(config)
			var at *sdk.FieldError
			if !errors.As(err, &at) || at.Field != "plugged" || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
			if err != nil && strings.Contains(err.Error(), "PRIVATE") {
				t.Errorf("it tells of the key: %v", err)
			}
		})
	}
}

func encode(t *testing.T, a *authority.Authority) authority.Files {
	t.Helper()
	f, err := a.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func put(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join("cacerts", name), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestOpenFile: a key that others may read is not used.
func TestOpenFile(t *testing.T) {
	t.Chdir(t.TempDir())
	root, err := authority.Root("acme", nil, 2048, time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	keep(t, "ca.pem", root)
	if err := os.Chmod("ca.pem", 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := file("ca.pem").load(t.Context()); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Error(err)
	}
}

// TestConfig: what a config can't be, and where.
func TestConfig(t *testing.T) {
	for text, field := range map[string]string{
		`{"keep": "paper"}`: "keep", `{"keep": "file"}`: "file", `{"file": "ca.pem"}`: "file", `{"ttl": "0s"}`: "ttl", `{"maxTTL": "1h"}`: "maxTTL",
		`{"root": {"keySize": 1024}}`: "root.keySize", `{"root": {"grace": 100}}`: "root.grace", `{"more": 1}`: "more",
		`{"external": {"registrationAuthorities": ["spiffe://cluster.local/ns/istio-system/sa/coxswain", "coxswain"]}}`: "external.registrationAuthorities[1]",
		`{"external": {"by": "kubernetes"}}`:                   "external.signer",
		`{"external": {"by": "kubernetes", "signer": "mesh"}}`: "external.signer",
		`{"external": {"by": "kubernetes", "domain": "a/b"}}`:  "external.domain",
		`{"external": {"portSigner": "mesh"}}`:                 "external.portSigner",
		`{"external": {"signer": "a/b"}}`:                      "external.signer", `{"external": {"domain": "a"}}`: "external.domain",
		`{"external": {"timeout": "0s"}}`:                                            "external.timeout",
		`{"external": {"by": "server"}}`:                                             "external.address",
		`{"external": {"by": "server", "address": "a:1"}}`:                           "external.tls",
		`{"external": {"by": "server", "address": "a:1", "tls": {"cert": "c.pem"}}}`: "external.tls.cert",
		`{"external": {"address": "a:1"}}`:                                           "external.address",
		`{"external": {"tls": {}}}`:                                                  "external.tls", `{"external": {"tokenFile": "t"}}`: "external.tokenFile",
		`{"external": {"agents": ["istio-system/ztunnel", "ztunnel"]}}`: "external.agents[1]", `{"external": {"cluster": "east"}}`: "external.cluster",
		`{"external": {"by": "kubernetes", "signer": "kubernetes.io/legacy-unknown"}}`: "external.signer",
		`{"external": {"by": "kubernetes", "domain": "kubernetes.io"}}`:                "external.domain",
		`{"external": {"portSigner": "kubernetes.io/kubelet-serving"}}`:                "external.portSigner",
	} {
		if at, reason := plugintest.Refusal(t, Plugin(), []byte(text)); at != field {
			t.Errorf("%s: %s: %s", text, at, reason)
		}
	}
}

// TestUnready: who calls before there is a CA is told to come again.
func TestUnready(t *testing.T) {
	t.Chdir(t.TempDir())
	c, err := New(defaults())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Call(ctx, sdk.Call{Request: encoded(t, &security.IstioCertificateRequest{})})
	var told *sdk.CallError
	if !errors.As(err, &told) || told.Code != uint32(codes.Unavailable) {
		t.Error(err)
	}
}

// TestAgentsOfNodes: an agent gets certificates for what runs on the node of its pod, and nobody
// else does.
func TestAgentsOfNodes(t *testing.T) {
	t.Chdir(t.TempDir())
	const agent, cart = "spiffe://cluster.local/ns/istio-system/sa/ztunnel", "spiffe://cluster.local/ns/shop/sa/cart"
	pod := func(cluster, namespace, name, account, node string) *sdk.Row {
		row := sdk.WorkloadRow(&pb.Workload{Cluster: cluster, Namespace: namespace, Name: name, ServiceAccount: account, Node: node})
		row.Key += "@" + cluster
		return row
	}
	h := plugintest.Start(t, Plugin(), []byte(`{"external": {"agents": ["istio-system/ztunnel"]}}`))
	h.Update(state.Workloads, []*sdk.Row{
		pod("west", "istio-system", "ztunnel-1", "ztunnel", "one"), pod("west", "shop", "web-1", "web", "one"), pod("west", "shop", "cart-1", "cart", "two"),
		pod("east", "istio-system", "ztunnel-1", "ztunnel", "two"),
		pod("west", "istio-system", "other", "other", "one"), pod("west", "shop", "lost", "lost", ""),
	})
	h.WaitSynced()
	facts := func(cluster, pod string) map[string]string { return map[string]string{"cluster": cluster, "pod": pod} }
	own := facts("west", "istio-system/ztunnel-1")
	asks := func(identity string, facts map[string]string, of string) *pb.Call {
		metadata := &structpb.Struct{Fields: map[string]*structpb.Value{impersonated: structpb.NewStringValue(of)}}
		return &pb.Call{Identities: []string{identity}, Facts: facts, Request: encoded(t, &security.IstioCertificateRequest{Metadata: metadata})}
	}
	leaf, _ := signed(t, h, asks(agent, own, web))
	if len(leaf.URIs) != 1 || leaf.URIs[0].String() != web {
		t.Errorf("it is of %v", leaf.URIs)
	}
	refused := func(what string, call *pb.Call, words string) {
		t.Helper()
		call.Method = security.IstioCertificateService_CreateCertificate_FullMethodName
		if called := h.Call(call); called.Code != uint32(codes.PermissionDenied) || !strings.Contains(called.Message, words) {
			t.Errorf("%s: %d %s", what, called.Code, called.Message)
		}
	}
	refused("on another node", asks(agent, own, cart), "no pod of the service account shop/cart is known on the caller's node, one")
	refused("in another cluster", asks(agent, facts("east", "istio-system/ztunnel-1"), web), "on the caller's node, two")
	refused("no agent", asks(cart, facts("west", "shop/cart-1"), web), "may not ask")
	refused("an agent of a foreign domain", asks("spiffe://else/ns/istio-system/sa/ztunnel", own, web), "may not ask")
	refused("without a pod", asks(agent, nil, web), "the token of its pod")
	refused("of a pod that nobody knows", asks(agent, facts("west", "istio-system/gone"), web), "on no node")
	refused("of the pod of another account", asks(agent, facts("west", "istio-system/other"), web), "on no node")
	refused("a foreign domain", asks(agent, own, "spiffe://else/ns/shop/sa/web"), "is no workload")
	refused("nonsense", asks(agent, own, "shop/web"), "is no workload")
	h.Update(state.Workloads, []*sdk.Row{pod("west", "shop", "cart-1", "cart", "one")})
	deadline := time.Now().Add(plugintest.Timeout)
	call := asks(agent, own, cart)
	call.Method = security.IstioCertificateService_CreateCertificate_FullMethodName
	for h.Call(call).Code != 0 {
		if time.Now().After(deadline) {
			t.Fatal("a pod that has come to the node isn't known")
		}
	}
	bare := started(t, `{}`)
	call = asks(agent, own, web)
	call.Method = security.IstioCertificateService_CreateCertificate_FullMethodName
	if called := bare.Call(call); called.Code != uint32(codes.PermissionDenied) ||
		slices.ContainsFunc(bare.Ready().Reads, func(r *pb.Read) bool { return r.Table == state.Workloads }) {
		t.Errorf("nobody is trusted: %d %s, and it reads %v", called.Code, called.Message, bare.Ready().Reads)
	}
}

// TestConform: it is a plugin as the contract has it.
func TestConform(t *testing.T) {
	t.Chdir(t.TempDir())
	plugintest.Conform(t, plugintest.Suite{
		Kind: "controller", Config: `{"keep": "file", "file": "ca.pem"}`, BadConfigs: []any{`{"keep": "paper"}`},
	}, plugintest.Memory(Plugin()))
}

// TestReadme: the example's config is one.
func TestReadme(t *testing.T) {
	_, config := readme.Example(t, 2)
	t.Chdir(t.TempDir())
	h := started(t, string(config))
	signed(t, h, &pb.Call{Identities: []string{web}, Request: encoded(t, &security.IstioCertificateRequest{})})
}
