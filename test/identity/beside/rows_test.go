package beside

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	web       = "spiffe://cluster.local/ns/shop/sa/web"
	cart      = "spiffe://cluster.local/ns/shop/sa/cart"
	forwarded = "x-forwarded-client-cert"
	// usually is what certificates are like.
	usually = "24h0m0s, trusted, the last is the root, 2 in the chain"
)

// Areas of docs/differences.md that several rows are about.
const (
	nobody  = "clients' certificates that name nobody"
	foreign = "callers of a foreign trust domain"
	twice   = "headers that callers show twice"
)

// comes is a question about a caller that asks for clusters.
func comes(what string, c caller) row {
	return row{what: what, ask: func(t *testing.T, s *server) string { return s.comes(t, c) }}
}

// certifies is a question about a caller that asks for a certificate.
func certifies(what string, c caller, of signing) row {
	return row{what: what, ask: func(t *testing.T, s *server) string { return s.certifies(t, c, of) }}
}

// but says that the answers differ on purpose.
func (r row) but(area, istiod, coxswain string) row {
	r.differs = &difference{area, istiod, coxswain}
	return r
}

// unset are the rows about what nothing is set for.
func (w *world) unset(t *testing.T) []part {
	token := w.cluster.Token(t, "shop", "web", "istio-ca", "")
	return []part{{"what nothing is set for", []row{
		comes("a service account's token", bearer(token)),
		comes("what a gateway says (no TRUSTED_GATEWAY_CIDR)", caller{headers: []string{forwarded, "URI=" + web}}),
		comes("a token of OpenID Connect (no JWT_RULE)", bearer(w.issuer.token(t))),
		certifies("another's certificate (no CA_TRUSTED_NODE_ACCOUNTS)", bearer(token), signing{metadata: map[string]any{"ImpersonatedIdentity": cart}}).
			but("requests for somebody else's certificate", "Unauthenticated", "PermissionDenied"),
	}}}
}

// set are the rows about all else.
func (w *world) set(t *testing.T) []part {
	return []part{
		{"the order of authenticators", w.order(t)},
		{"plain text", w.inPlain(t)},
		{"client certificates", w.certificates(t)},
		{"tokens of OpenID Connect", w.openID(t)},
		{"tokens of service accounts", w.accounts(t)},
		{"what gateways say", w.gateways(t)},
		{"how a token is shown", w.headers(t)},
		{"the node's name", w.nodes(t)},
		{"who is nobody", w.nobody(t)},
		{"certificates", w.signing(t)},
		{"agents of nodes", w.agents(t)},
		{"secrets", w.secrets(t)},
	}
}

func (w *world) order(t *testing.T) []row {
	token, nameless := w.cluster.Token(t, "shop", "web", "istio-ca", ""), w.authority.issue(t, x509.Certificate{})
	return []row{
		comes("nothing is shown", caller{}),
		comes("a certificate without names, a good token", shows(nameless, "authorization", "Bearer "+token)).but(nobody, byTLS, "OK"),
		comes("a certificate without names, a bad token", shows(nameless, "authorization", "Bearer x")).but(nobody, byTLS, "Unauthenticated"),
		comes("a good certificate, a bad token", shows(w.authority.named(t, web), "authorization", "Bearer x")),
		comes("the certificate of another than the token's", shows(w.authority.named(t, cart), "authorization", "Bearer "+token)),
		comes("the same, as the other", shows(w.authority.named(t, cart), "authorization", "Bearer "+token).as("shop/cart")),
		comes("a token of OpenID Connect, and a gateway's word of another", bearer(w.issuer.token(t), forwarded, "URI="+cart).as("shop/cart")),
		comes("a bad token, and a gateway's word", bearer("x", forwarded, "URI="+web)),
		comes("all bad", shows(nameless, "authorization", "Bearer x", forwarded, "URI=")).but(nobody, byTLS, "Unauthenticated"),
	}
}

func (w *world) inPlain(t *testing.T) []row {
	token := w.cluster.Token(t, "shop", "web", "istio-ca", "")
	return []row{
		comes("nothing is shown", caller{}.inPlain()),
		comes("a good token", bearer(token).inPlain()),
		comes("a bad token", bearer("x").inPlain()),
		comes("a gateway's word of another", caller{headers: []string{forwarded, "URI=" + cart}}.inPlain()),
		certifies("a certificate, with a good token", bearer(token).inPlain(), signing{}).but("certificates that are asked for in plain text",
			"Unimplemented", "Unauthenticated"),
	}
}

func (w *world) certificates(t *testing.T) []row {
	now, client := time.Now(), []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	names := func(of x509.Certificate) caller {
		of.URIs = append(of.URIs, uri(t, web))
		return shows(w.authority.issue(t, of))
	}
	between := w.authority.below(t)
	chain := between.named(t, web)
	chain.Certificate = append(chain.Certificate, between.certificate.Raw)
	return []row{
		comes("one for clients", names(x509.Certificate{ExtKeyUsage: client})).but("clients' certificates that are for clients alone", byTLS, "OK"),
		comes("one for servers alone", names(x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})),
		comes("one that has expired", names(x509.Certificate{NotBefore: now.Add(-2 * time.Hour), NotAfter: now.Add(-time.Hour)})),
		comes("one that is not valid yet", names(x509.Certificate{NotBefore: now.Add(time.Hour), NotAfter: now.Add(2 * time.Hour)})),
		comes("one of another authority", shows(newAuthority(t).named(t, web))),
		comes("one through an intermediate", shows(chain)),
		comes("the same, without the intermediate", shows(between.named(t, web))),
		comes("two names, the second fits", shows(w.authority.named(t, cart, web))).but(nobody, byTLS, "OK"),
		comes("two names, none fits", shows(w.authority.named(t, cart, "spiffe://cluster.local/ns/edge/sa/web"))).but(nobody, byTLS, "PermissionDenied"),
		comes("a DNS name alone", shows(w.authority.issue(t, x509.Certificate{DNSNames: []string{"web.shop"}}))).but(nobody, byTLS, "Unauthenticated"),
		comes("an address alone", shows(w.authority.issue(t, x509.Certificate{IPAddresses: []net.IP{net.IPv4(10, 0, 0, 1)}}))).but(nobody,
			byTLS, "Unauthenticated"),
		comes("a URI that is no identity", shows(w.authority.named(t, "https://shop.example/web"))).but(nobody, byTLS, "PermissionDenied"),
		comes("an identity with more behind it", shows(w.authority.named(t, web+"/more"))).but(nobody, byTLS, "PermissionDenied"),
		comes("a foreign trust domain", shows(w.authority.named(t, "spiffe://other.example/ns/shop/sa/web"))).but(foreign, byTLS, "PermissionDenied"),
		comes("an alias of the trust domain", shows(w.authority.named(t, "spiffe://old.example/ns/shop/sa/web"))).but(
			"certificates of an alias of the trust domain", byTLS, "OK",
		),
	}
}

func (w *world) openID(t *testing.T) []row {
	now, i := time.Now().Unix(), w.issuer
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	secret := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(&i.key.PublicKey)})
	good := i.token(t)
	unsigned := "eyJhbGciOiJub25lIn0" + good[strings.Index(good, "."):strings.LastIndex(good, ".")+1]
	return []row{
		comes("a good one", bearer(good)),
		comes("the same once more", bearer(good)),
		comes("another account's", bearer(i.token(t, "sub", "system:serviceaccount:shop:cart"))),
		comes("another namespace's", bearer(i.token(t, "sub", "system:serviceaccount:edge:web"))),
		comes("signed with another key of that name", bearer(i.signed(t, jose.RS256, other, "1"))),
		comes("signed with a key that nobody knows", bearer(i.signed(t, jose.RS256, other, "9"))),
		comes("the public key as a secret", bearer(i.signed(t, jose.HS256, secret, "1"))),
		comes("not signed", bearer(unsigned)),
		comes("signed with ECDSA", bearer(i.signed(t, jose.ES256, i.curve, "2"))).
			but("tokens of OpenID Connect that are signed with ECDSA", "Unauthenticated", "OK"),
		comes("of another issuer", bearer(i.token(t, "iss", "https://other.example"))),
		comes("for another audience", bearer(i.token(t, "aud", []string{"vault"}))),
		comes("for two audiences", bearer(i.token(t, "aud", []string{"vault", "istio-ca"}))),
		comes("for none", bearer(i.token(t, "aud", nil))),
		comes("expired", bearer(i.token(t, "exp", now-60))),
		comes("without an end", bearer(i.token(t, "exp", nil))),
		comes("not valid yet", bearer(i.token(t, "nbf", now+3600))),
		comes("its subject is no account", bearer(i.token(t, "sub", "web"))),
		comes("its subject has more behind it", bearer(i.token(t, "sub", "system:serviceaccount:shop:web:more"))).
			but("tokens of OpenID Connect whose subject", "OK", "Unauthenticated"),
	}
}

func (w *world) accounts(t *testing.T) []row {
	now, c := time.Now().Unix(), w.cluster
	c.Apply(t, pod("bound", "shop/web", "node-1", "Running")+pod("deleted", "shop/web", "node-1", "Running"))
	bound, ofDeleted := c.Token(t, "shop", "web", "istio-ca", "bound"), c.Token(t, "shop", "web", "istio-ca", "deleted")
	ofGone := c.Token(t, "shop", "gone", "istio-ca", "")
	c.Kubectl(t, "delete", "pod", "deleted", "-n", "shop", "--force", "--grace-period=0")
	c.Kubectl(t, "delete", "serviceaccount", "gone", "-n", "shop")
	good, east := c.Token(t, "shop", "web", "istio-ca", ""), w.east.Token(t, "shop", "web", "istio-ca", "")
	broken := good[:strings.LastIndex(good, ".")+1] + strings.Repeat("A", 86)
	return []row{
		comes("a good one", bearer(good)),
		comes("the same once more", bearer(good)),
		comes("bound to a pod", bearer(bound)),
		comes("of a pod that is gone", bearer(ofDeleted)),
		comes("of an account that is gone", bearer(ofGone).as("shop/gone")),
		comes("for another audience", bearer(c.Token(t, "shop", "web", "vault", ""))),
		comes("for the API server", bearer(c.Token(t, "shop", "web", "", ""))),
		comes("a wrong signature", bearer(broken)),
		comes("expired", bearer(c.Sign(t, "shop", "web", "iat", now-7200, "nbf", now-7200, "exp", now-3600))),
		comes("not valid yet", bearer(c.Sign(t, "shop", "web", "nbf", now+3600, "exp", now+7200))),
		comes("of another issuer", bearer(c.Sign(t, "shop", "web", "iss", "https://other.example"))),
		comes("as the API server signs them", bearer(c.Sign(t, "shop", "web"))),
		comes("an administrator's", bearer("administrator")),
		comes("clusterid: its own", bearer(good, "clusterid", "Kubernetes")),
		comes("clusterid: one that nobody knows", bearer(good, "clusterid", "mars")),
		comes("clusterid: another one", bearer(good, "clusterid", "east")),
		comes("clusterid: twice", bearer(good, "clusterid", "Kubernetes", "clusterid", "mars")).
			but(twice, "OK", "Unauthenticated"),
		comes("of another cluster", bearer(east, "clusterid", "east").as("shop/web", "CLUSTER_ID", "east")),
		comes("of another cluster, by its alias", bearer(east, "clusterid", "old").as("shop/web", "CLUSTER_ID", "old")),
		comes("of another cluster, without clusterid", bearer(east)),
		comes("of another cluster, as if of this one", bearer(east, "clusterid", "Kubernetes")),
		comes("of another cluster, the node says this one", bearer(east, "clusterid", "east")),
	}
}

func (w *world) gateways(t *testing.T) []row {
	says := func(text string) caller { return caller{headers: []string{forwarded, text}} }
	return []row{
		comes("a URI, from this machine", says("By=spiffe://cluster.local/ns/edge/sa/gw;Hash=00;URI="+web)),
		comes("another account's", says("URI="+cart)),
		comes("another namespace's", says("URI=spiffe://cluster.local/ns/edge/sa/web")),
		comes("a URI in quotes, and a subject", says(`Hash=00;Subject="CN=web,O=shop";URI="`+web+`"`)),
		comes("a DNS name alone", says("Hash=00;DNS=web.shop")),
		comes("neither", says("Hash=00")),
		comes("what can't be read", says("URI=\"")),
		comes("two certificates, the last fits", says("URI="+cart+",URI="+web)),
		comes("two certificates, the first fits", says("URI="+web+",URI="+cart)).
			but("`x-forwarded-client-cert` with several certificates", "OK", "PermissionDenied"),
		comes("a foreign trust domain", says("URI=spiffe://other.example/ns/shop/sa/web")).but(foreign, "OK", "PermissionDenied"),
		certifies("a certificate for whom a gateway names", says("URI="+web), signing{}),
	}
}

func (w *world) headers(t *testing.T) []row {
	token := w.cluster.Token(t, "shop", "web", "istio-ca", "")
	shown := func(values ...string) caller {
		c := caller{}
		for _, v := range values {
			c.headers = append(c.headers, "authorization", v)
		}
		return c
	}
	return []row{
		comes("Bearer TOKEN", shown("Bearer "+token)),
		comes("bearer TOKEN", shown("bearer "+token)).but("`authorization: bearer` in lower case", "Unauthenticated", "OK"),
		comes("TOKEN", shown(token)),
		comes("Basic", shown("Basic d2ViOndlYg==")),
		comes("Bearer and nothing", shown("Bearer ")),
		comes("garbage", shown("Bearer "+strings.Repeat("\xc3\xa4", 400))),
		comes("three parts of garbage", shown("Bearer a.b.c")),
		comes("two headers, both good", shown("Bearer "+token, "Bearer "+token)).but(twice, "OK", "Unauthenticated"),
		comes("two headers, the first is bad", shown("Bearer x", "Bearer "+token)),
		comes("a token of 20 KiB", shown("Bearer "+strings.Repeat("x", 20<<10))),
		comes("a token of 100 KiB", shown("Bearer "+strings.Repeat("x", 100<<10))),
		comes("a token of 300 KiB", shown("Bearer "+strings.Repeat("x", 300<<10))).but("headers of more than 128 KiB", "Unauthenticated", "Internal"),
		certifies("a certificate, with nothing", caller{}, signing{}),
		certifies("a certificate, with garbage", bearer("x"), signing{}),
	}
}

func (w *world) nodes(t *testing.T) []row {
	token := w.cluster.Token(t, "shop", "web", "istio-ca", "bound")
	as := func(account string, more ...string) caller { return bearer(token).as(account, more...) }
	return []row{
		comes("its account", as("shop/web")),
		comes("another account of its namespace", as("shop/cart")),
		comes("an account of that name elsewhere", as("edge/web")),
		comes("no account", as("shop/")),
		comes("no account, another namespace", as("edge/")),
		comes("no namespace in the metadata, that of its id", as("shop/web", "NAMESPACE", "")),
		comes("no namespace in the metadata, another in its id", as("edge/web", "NAMESPACE", "")),
		comes("the namespace of the metadata, another in its id", as("edge/web", "NAMESPACE", "shop")),
		comes("another pod's name", as("shop/web", "NAME", "other-pod")),
		comes("another node", as("shop/web", "NODE_NAME", "node-2")),
		comes("another address", as("shop/web", "INSTANCE_IPS", "10.9.9.9")),
		comes("another cluster that is known", as("shop/web", "CLUSTER_ID", "east")),
		comes("a cluster that nobody knows", as("shop/web", "CLUSTER_ID", "mars")),
		comes("another trust domain", as("shop/web", "TRUST_DOMAIN", "other.example")),
	}
}

func (w *world) nobody(t *testing.T) []row {
	const debug = "istio.io/debug"
	known, own := shows(w.authority.named(t, web)), shows(w.authority.named(t, "spiffe://cluster.local/ns/istio-system/sa/istiod")).as("istio-system/istiod")
	asks := func(what string, c caller, typeURL string, names ...string) row {
		return row{what: what, ask: func(t *testing.T, s *server) string { return s.asks(t, c, typeURL, names...) }}
	}
	api := func(c caller, account string) caller { return c.as(account, "GENERATOR", "api") }
	const entries = "networking.istio.io/v1alpha3/ServiceEntry"
	return []row{
		asks("a debug page, in plain text", caller{}.inPlain(), debug, "syncz"),
		asks("a debug page, as an account", known, debug, "configz"),
		asks("a debug page, as the control plane's namespace", own, debug, "configz"),
		asks("the configuration, in plain text", api(caller{}.inPlain(), "istio-system/istiod"), entries).but("who may not read the configuration",
			"Unauthenticated", "InvalidArgument"),
		asks("the configuration, as an account", api(known, "shop/web"), entries).but("who may not read the configuration",
			"PermissionDenied", "InvalidArgument"),
		asks("the configuration, as the control plane's namespace", api(own, "istio-system/istiod"), entries),
	}
}

func (w *world) signing(t *testing.T) []row {
	token := bearer(w.cluster.Token(t, "shop", "web", "istio-ca", ""))
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	usual, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	const days = 24 * 3600
	names := &x509.CertificateRequest{DNSNames: []string{"istiod.istio-system.svc"}, URIs: append(x509.Certificate{}.URIs, uri(t, cart))}
	signed := row{what: "an agent's request, wrongly signed", ask: func(t *testing.T, s *server) string {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, newKey(t))
		if err != nil {
			t.Fatal(err)
		}
		der[len(der)-1] ^= 1
		return s.certifies(t, token, signing{csr: string(encoded("CERTIFICATE REQUEST", der))})
	}}
	return []row{
		certifies("P-256, by a token", token, signing{}),
		certifies("RSA 2048, by a token", token, signing{key: usual}),
		certifies("by a certificate", shows(w.authority.named(t, web)), signing{}),
		certifies("by a certificate with two names", shows(w.authority.named(t, web, cart)), signing{}).
			but(nobody, byTLS, "[spiffe://cluster.local/ns/shop/sa/web spiffe://cluster.local/ns/shop/sa/cart] [] for "+usually),
		certifies("by a token of OpenID Connect", bearer(w.issuer.token(t)), signing{}),
		certifies("for an hour", token, signing{seconds: 3600}),
		certifies("for 90 days", token, signing{seconds: 90 * days}),
		certifies("for 91 days", token, signing{seconds: 91 * days}),
		certifies("for 0 s", token, signing{seconds: 0}),
		certifies("for -1 s", token, signing{seconds: -1}),
		certifies("names in the request", token, signing{names: names}),
		certifies("RSA 1024", token, signing{key: small}).but("requests for certificates with RSA keys",
			"[spiffe://cluster.local/ns/shop/sa/web] [] for "+usually, "InvalidArgument"),
		certifies("no request", token, signing{csr: " "}),
		certifies("a request of nonsense", token, signing{csr: "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"}),
		signed,
		certifies("an account of a foreign trust domain", shows(w.authority.named(t, "spiffe://other.example/ns/shop/sa/web")), signing{}).
			but(foreign, byTLS, "PermissionDenied"),
		certifies("an account of a foreign trust domain, by a gateway's word",
			caller{headers: []string{forwarded, "URI=spiffe://other.example/ns/shop/sa/web"}}, signing{}).
			but(foreign, "[spiffe://other.example/ns/shop/sa/web] [] for "+usually, "PermissionDenied"),
	}
}
