package beside

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ocsp"
)

// values are those of a Secret or a ConfigMap, by their keys.
type values map[string][]byte

// object is a Secret (NAMESPACE/NAME) of a type.
func (v values) secret(name, kind string) string {
	namespace, name, _ := strings.Cut(name, "/")
	var all []string
	for _, k := range slices.Sorted(maps.Keys(v)) {
		all = append(all, fmt.Sprintf("%s: %q", k, base64.StdEncoding.EncodeToString(v[k])))
	}
	return fmt.Sprintf("---\n{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: %s}, type: %s, data: {%s}}\n",
		name, namespace, kind, strings.Join(all, ", "))
}

// configMap is a ConfigMap (NAMESPACE/NAME).
func (v values) configMap(name string) string {
	namespace, name, _ := strings.Cut(name, "/")
	var all []string
	for _, k := range slices.Sorted(maps.Keys(v)) {
		all = append(all, fmt.Sprintf("%s: %q", k, v[k]))
	}
	return fmt.Sprintf("---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s}, data: {%s}}\n", name, namespace, strings.Join(all, ", "))
}

// material is what Secrets are made of.
type material struct {
	*authority
	t *testing.T
}

// pair is a certificate of a name, with its key.
func (m material) pair(name string, of x509.Certificate) (chain, key []byte) {
	m.t.Helper()
	of.Subject.CommonName = name
	c := m.issue(m.t, of)
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		m.t.Fatal(err)
	}
	return encoded("CERTIFICATE", c.Certificate[0]), encoded("PRIVATE KEY", der)
}

// root is a certificate of a name to trust in.
func (m material) root(name string) []byte {
	m.t.Helper()
	chain, _ := m.pair(name, x509.Certificate{IsCA: true, BasicConstraintsValid: true})
	return chain
}

// revoked is a list of revoked certificates.
func (m material) revoked() []byte {
	m.t.Helper()
	issuer := *m.certificate
	issuer.KeyUsage |= x509.KeyUsageCRLSign
	issuer.SubjectKeyId = []byte{1}
	der, err := x509.CreateRevocationList(rand.Reader,
		&x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now(), NextUpdate: time.Now().Add(time.Hour)},
		&issuer, m.key)
	if err != nil {
		m.t.Fatal(err)
	}
	return encoded("X509 CRL", der)
}

// staple is an answer of a responder.
func (m material) staple() []byte {
	m.t.Helper()
	of := ocsp.Response{Status: ocsp.Good, SerialNumber: big.NewInt(7), ThisUpdate: time.Now(), NextUpdate: time.Now().Add(time.Hour), IssuerHash: crypto.SHA1}
	der, err := ocsp.CreateResponse(m.certificate, m.certificate, of, m.key)
	if err != nil {
		m.t.Fatal(err)
	}
	return der
}

// secrets makes Secrets and ConfigMaps and returns the rows about them.
func (w *world) secrets(t *testing.T) []row {
	other := newAuthority(t)
	m := material{&authority{other.certificate, other.key}, t}
	chain, key := m.pair("first", x509.Certificate{})
	generic, genericKey := m.pair("second", x509.Certificate{})
	_, wrongKey := m.pair("third", x509.Certificate{})
	ended, endedKey := m.pair("ended", x509.Certificate{NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)})
	root, another, crl, staple := m.root("root"), m.root("another"), m.revoked(), m.staple()
	const unfit = "a secret whose key is not its certificate's"
	const opaque, ofTLS = "Opaque", "kubernetes.io/tls"
	own := values{"tls.crt": chain, "tls.key": key}
	with := func(more values) values {
		all := maps.Clone(own)
		maps.Copy(all, more)
		return all
	}
	w.cluster.Apply(t, own.secret("edge/plain", ofTLS)+own.secret("shop/plain", ofTLS)+
		values{"cert": generic, "key": genericKey, "cacert": another, "crl": crl}.secret("edge/generic", opaque)+
		with(values{"cert": generic, "key": genericKey}).secret("edge/both", opaque)+
		with(values{"tls.ocsp-staple": staple}).secret("edge/stapled", ofTLS)+
		with(values{"ca.crt": root}).secret("edge/compound", ofTLS)+
		with(values{"ca.crt": root, "ca.crl": crl}).secret("edge/revoking", ofTLS)+
		with(values{"ca.crt": root}).secret("edge/apart", ofTLS)+values{"cacert": another}.secret("edge/apart-cacert", opaque)+
		with(values{"ca.crt": root}).secret("edge/odd", ofTLS)+values{"other": another}.secret("edge/odd-cacert", opaque)+
		values{"ca.crt": root}.secret("edge/roots-cacert", opaque)+
		values{"ca.crt": slices.Concat(root, another)}.secret("edge/two-cacert", opaque)+
		values{"tls.crt": chain, "tls.key": wrongKey}.secret("edge/mismatch", ofTLS)+
		values{"tls.crt": ended, "tls.key": endedKey}.secret("edge/ended", ofTLS)+
		values{"tls.crt": nil, "tls.key": nil}.secret("edge/empty", ofTLS)+
		values{"tls.crt": []byte("x"), "tls.key": []byte("y")}.secret("edge/garbage", ofTLS)+
		values{"some": chain}.secret("edge/else", opaque)+
		own.secret("edge/helm", "helm.sh/release.v1")+own.secret("edge/typed", "example.com/own")+
		values{"ca.crt": root}.configMap("edge/roots")+values{"ca.crt": root, "ca.crl": crl}.configMap("edge/revoking")+
		values{"cacert": root}.configMap("edge/generic")+values{"ca.crt": root}.configMap("shop/roots")+values{"other": root}.configMap("edge/else"))

	there, thereKey := m.pair("theirs", x509.Certificate{})
	theirs := values{"tls.crt": there, "tls.key": thereKey}
	w.east.Apply(t, theirs.secret("edge/plain", ofTLS)+theirs.secret("edge/theirs", ofTLS))
	far := func(account string) caller {
		return bearer(w.east.Token(t, "edge", account, "istio-ca", ""), "clusterid", "east").as("edge/"+account, "CLUSTER_ID", "east")
	}
	gw, poor := bearer(w.cluster.Token(t, "edge", "gw", "istio-ca", "")).as("edge/gw"),
		bearer(w.cluster.Token(t, "edge", "poor", "istio-ca", "")).as("edge/poor")
	asks := func(what string, c caller, name string) row {
		return row{what: what, ask: func(t *testing.T, s *server) string { return s.secret(t, c, name) }}
	}
	return []row{
		asks("kubernetes://NAME", gw, "kubernetes://plain"),
		asks("kubernetes://NAMESPACE/NAME", gw, "kubernetes://edge/plain"),
		asks("in plain text", gw.inPlain(), "kubernetes://plain"),
		asks("by a certificate", shows(w.authority.named(t, "spiffe://cluster.local/ns/edge/sa/gw")).as("edge/gw"), "kubernetes://plain"),
		asks("of an account that may not list secrets", poor, "kubernetes://plain"),
		asks("its roots, of that account", poor, "kubernetes://compound-cacert"),
		asks("of another namespace", gw, "kubernetes://shop/plain"),
		asks("roots of another namespace", gw, "kubernetes://shop/plain-cacert"),
		asks("that is not there", gw, "kubernetes://missing"),
		asks("roots that are not there", gw, "kubernetes://missing-cacert"),
		asks("NAME alone", gw, "plain"),
		asks("generic", gw, "kubernetes://generic"),
		asks("roots of generic, with revoked ones", gw, "kubernetes://generic-cacert"),
		asks("generic, and of TLS, in one", gw, "kubernetes://both"),
		asks("with a staple", gw, "kubernetes://stapled"),
		asks("compound", gw, "kubernetes://compound"),
		asks("compound: its roots", gw, "kubernetes://compound-cacert"),
		asks("compound: its roots, with revoked ones", gw, "kubernetes://revoking-cacert"),
		asks("roots in NAME-cacert and in NAME", gw, "kubernetes://apart-cacert"),
		asks("NAME-cacert has none, NAME has", gw, "kubernetes://odd-cacert"),
		asks("roots in NAME-cacert alone", gw, "kubernetes://roots-cacert"),
		asks("two roots", gw, "kubernetes://two-cacert"),
		asks("without roots: its roots", gw, "kubernetes://plain-cacert"),
		asks("another key", gw, "kubernetes://mismatch").but(unfit, "certificate of first", "none"),
		asks("ended", gw, "kubernetes://ended"),
		asks("empty values", gw, "kubernetes://empty"),
		asks("garbage", gw, "kubernetes://garbage").but(unfit, "certificate of ", "none"),
		asks("other keys", gw, "kubernetes://else"),
		asks("of type helm.sh/release.v1", gw, "kubernetes://helm").but("Secrets of a cluster", "none", "certificate of first with its key"),
		asks("of a type of its own", gw, "kubernetes://typed"),
		asks("configmap://NAMESPACE/NAME", gw, "configmap://edge/roots"),
		asks("the same with -cacert", gw, "configmap://edge/roots-cacert"),
		asks("the same, of the account that may not list secrets", poor, "configmap://edge/roots"),
		asks("a ConfigMap with revoked ones", gw, "configmap://edge/revoking"),
		asks("a ConfigMap with cacert", gw, "configmap://edge/generic"),
		asks("a ConfigMap of another namespace", gw, "configmap://shop/roots"),
		asks("a ConfigMap without roots", gw, "configmap://edge/else"),
		asks("a ConfigMap without a namespace", gw, "configmap://roots"),
		asks("a ConfigMap that is not there", gw, "configmap://edge/missing"),
		asks("a proxy of another cluster: what its own has", far("gw"), "kubernetes://theirs"),
		asks("what both have", far("gw"), "kubernetes://plain"),
		asks("what the first cluster alone has", far("gw"), "kubernetes://generic"),
		asks("of an account that may not list secrets there", far("poor"), "kubernetes://theirs"),
		asks("a proxy of the first cluster: what the other alone has", gw, "kubernetes://theirs"),
		asks("kubernetes-gateway:// that no Gateway names", gw, "kubernetes-gateway://edge/plain"),
		asks("builtin://", gw, "builtin://"),
		asks("invalid://", gw, "invalid://"),
		asks("vault://", gw, "vault://plain"),
		asks("default, an agent's", gw, "default"),
	}
}
