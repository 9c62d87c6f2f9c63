package sds_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/sds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

const secretType = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"

func TestReadme(t *testing.T) {
	blocks, config := readme.Example(t, 3)
	h := plugintest.Start(t, sds.Plugin(), config)
	doc := kinds.Reader{Secrets: true}.Read("secret.yaml", []byte(blocks[1].Text))[0]
	if doc.Row == nil {
		t.Fatal(doc.Faults)
	}
	h.Update(doc.Table, []*sdk.Row{doc.Row})
	name := strings.TrimSpace(blocks[2].Text)
	if got := ask(t, h, proxy(t, "edge", "gateway"), name).GetValidationContext(); len(got.GetTrustedCa().GetInlineBytes()) == 0 {
		t.Errorf("%v", got)
	}
}

// proxy is one of an account.
func proxy(t testing.TB, namespace, account string) *sdk.Proxy {
	t.Helper()
	metadata, err := structpb.NewStruct(map[string]any{"NAMESPACE": namespace, "SERVICE_ACCOUNT": account, "CLUSTER_ID": "east"})
	if err != nil {
		t.Fatal(err)
	}
	node, err := proto.Marshal(&corev3.Node{Id: "router~10.0.0.1~a." + namespace + "~x", Metadata: metadata})
	if err != nil {
		t.Fatal(err)
	}
	id := "spiffe://cluster.local/ns/" + namespace + "/sa/" + account
	return &sdk.Proxy{Node: node, Types: []string{secretType}, Identities: []string{"spiffe://cluster.local/ns/elsewhere/sa/other", id}}
}

// ask returns a secret as a proxy is to have it; nil: it is told that there is none.
func ask(t testing.TB, h *plugintest.Harness, p *sdk.Proxy, name string) *tlsv3.Secret {
	t.Helper()
	if p.Connection == 0 {
		h.Attach(p)
	}
	body, said := h.Resources(p.Connection, secretType, name)[name]
	if !said || body == nil {
		return nil
	}
	var s tlsv3.Secret
	if err := proto.Unmarshal(body, &s); err != nil || s.Name != name {
		t.Fatal(err, s.Name)
	}
	return &s
}

// pair makes a certificate of its own key, in PEM.
func pair(t testing.TB, key crypto.Signer) (chain, private []byte) {
	t.Helper()
	of := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

func ec(t testing.TB, curve elliptic.Curve) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func rsaKey(t *testing.T, bits int) crypto.Signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func row(key string, data map[string][]byte) *sdk.Row {
	return &sdk.Row{Key: key, Payload: secrets.Content{Data: data}.Encode()}
}

func gatewayRow(t *testing.T, key, credential string) *sdk.Row {
	t.Helper()
	payload, err := kinds.Encode(&networking.Gateway{Servers: []*networking.Server{{Tls: &networking.ServerTLSSettings{CredentialName: credential}}}})
	if err != nil {
		t.Fatal(err)
	}
	return &sdk.Row{Key: key, Payload: payload}
}

// What each name means, for whom.
func TestNames(t *testing.T) {
	chain, key := pair(t, ec(t, elliptic.P256()))
	roots, _ := pair(t, ec(t, elliptic.P384()))
	apart, _ := pair(t, ec(t, elliptic.P521()))
	h := plugintest.Start(t, sds.Plugin(), nil)
	h.Commit(
		plugintest.Rows{Table: "v1/Secret", Upserts: []*sdk.Row{
			row("edge/web", map[string][]byte{"tls.crt": chain, "tls.key": key, "ca.crt": roots}),
			row("edge/generic", map[string][]byte{"cert": chain, "key": key, "cacert": apart, "tls.crt": roots}),
			row("edge/apart", map[string][]byte{"tls.crt": chain, "tls.key": key, "ca.crt": roots}),
			row("edge/apart-cacert", map[string][]byte{"ca.crt": apart}),
			row("edge/far@east", map[string][]byte{"tls.crt": chain, "tls.key": key}),
			row("other/web", map[string][]byte{"tls.crt": chain, "tls.key": key}),
			row("granted/web", map[string][]byte{"tls.crt": chain, "tls.key": key}),
			row("granted/more", map[string][]byte{"tls.crt": chain, "tls.key": key}),
		}},
		plugintest.Rows{Table: "clusters", Upserts: []*sdk.Row{{Key: "east"}}},
		plugintest.Rows{
			Table:   "v1/ConfigMap",
			Upserts: []*sdk.Row{row("edge/roots", map[string][]byte{"ca.crt": roots}), row("other/roots", map[string][]byte{"cacert": apart})},
		},
		plugintest.Rows{Table: kinds.Gateway, Upserts: []*sdk.Row{
			gatewayRow(t, "edge/a", "kubernetes-gateway://edge/web"), gatewayRow(t, "edge/b", "kubernetes-gateway://granted/web"),
			gatewayRow(t, "edge/c", "kubernetes-gateway://granted/more"), gatewayRow(t, "edge/d", "kubernetes-gateway://other/web"),
			{Key: "edge/e~shows", Annotations: map[string]string{istio.BackendCertificate: "kubernetes-gateway://edge/generic"}},
		}},
		plugintest.Rows{Table: "gateway.networking.k8s.io/ReferenceGrant", Upserts: []*sdk.Row{{Key: "granted/g", Payload: []byte(
			`{"from":[{"group":"gateway.networking.k8s.io","kind":"Gateway","namespace":"edge"}],"to":[{"group":"","kind":"Secret","name":"web"}]}`)}}},
	)
	p := proxy(t, "edge", "gateway")
	for _, c := range []struct {
		name  string
		chain []byte // of a certificate with its key
		roots []byte
		why   string
	}{
		{"kubernetes://web", chain, nil, ""},
		{"kubernetes://edge/web", chain, nil, ""},
		{"kubernetes://generic", chain, nil, ""},
		{"kubernetes://far", chain, nil, ""},
		{"kubernetes://web-cacert", nil, roots, ""},
		{"kubernetes://generic-cacert", nil, apart, ""},
		{"kubernetes://apart-cacert", nil, apart, ""},
		{"configmap://edge/roots", nil, roots, ""},
		{"configmap://edge/roots-cacert", nil, roots, ""},
		{"configmap://other/roots", nil, apart, ""},
		{"kubernetes-gateway://edge/web", chain, nil, ""},
		{"kubernetes-gateway://edge/web-cacert", nil, roots, ""},
		{"kubernetes-gateway://edge/generic", chain, nil, ""}, // for backends
		{"kubernetes-gateway://granted/web", chain, nil, ""},
		{"kubernetes-gateway://granted/more", nil, nil, "no ReferenceGrant"},
		{"kubernetes-gateway://other/web", nil, nil, "no ReferenceGrant"},
		{"kubernetes-gateway://edge/apart", nil, nil, "no Gateway of the proxy's namespace, edge, names it"},
		{"kubernetes-gateway://web", nil, nil, "names no namespace"},
		{"kubernetes://other/web", nil, nil, "secrets are for their own namespace's proxies"},
		{"kubernetes://nothing", nil, nil, "there is no Secret edge/nothing of cluster east, and there is no Secret edge/nothing"},
		{"kubernetes://nothing-cacert", nil, nil, "there is no Secret edge/nothing-cacert of cluster east, and there is " +
			"no Secret edge/nothing-cacert, and there is no Secret edge/nothing of cluster east, and "},
		{"kubernetes://apart-cacert-cacert", nil, apart, ""},
		{"kubernetes://far-cacert", nil, nil, "it has no ca.crt, nor cacert"},
		{"kubernetes://", nil, nil, "with both"},
		{"kubernetes://edge/web/more", nil, nil, "with both"},
		{"kubernetes://web@east", nil, nil, "with both"},
		{"configmap://roots", nil, nil, "names no namespace"},
		{"builtin://", nil, nil, "agent"},
		{"invalid://", nil, nil, "not valid"},
		{"vault://web", nil, nil, "not known"},
		{"web", nil, nil, "no name of a secret"},
	} {
		s := ask(t, h, p, c.name)
		if got := s.GetTlsCertificate(); string(got.GetCertificateChain().GetInlineBytes()) != string(c.chain) ||
			(len(got.GetPrivateKey().GetInlineBytes()) > 0) != (c.chain != nil) {
			t.Errorf("%s: certificate %v", c.name, got.GetCertificateChain())
		}
		if got := s.GetValidationContext(); string(got.GetTrustedCa().GetInlineBytes()) != string(c.roots) {
			t.Errorf("%s: roots %v", c.name, got)
		}
		said := ""
		for _, f := range h.Faults() {
			if strings.HasPrefix(f.What, "secret "+c.name+" for ") {
				said += f.Reason
			}
		}
		if (said == "") != (c.why == "") || !strings.Contains(said, c.why) {
			t.Errorf("%s: the fault is %q", c.name, said)
		}
	}
	if got := ask(t, h, proxy(t, "shop", "gateway"), "kubernetes://edge/web"); got != nil {
		t.Errorf("another namespace's proxy has %v", got.Name)
	}
	nobody := proxy(t, "edge", "gateway")
	nobody.Identities = []string{"spiffe://cluster.local/ns/edge/sa/other", "spiffe://x"}
	if got := ask(t, h, nobody, "kubernetes://web"); got != nil {
		t.Errorf("who says that it is another account has %v", got.Name)
	}
}

// Keys and certificates that Envoy would refuse are not served, and the reason has nothing of them.
func TestContents(t *testing.T) {
	good, key := pair(t, ec(t, elliptic.P256()))
	big, bigKey := pair(t, rsaKey(t, 2048))
	small, smallKey := pair(t, rsaKey(t, 1024))
	odd, oddKey := pair(t, ec(t, elliptic.P224()))
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ed, edPEM := pair(t, edKey)
	broken := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("hunter2hunter2")})
	for _, c := range []struct {
		name string
		data map[string][]byte
		why  string
	}{
		{"EC", map[string][]byte{"tls.crt": good, "tls.key": key}, ""},
		{"RSA", map[string][]byte{"tls.crt": big, "tls.key": bigKey}, ""},
		{"a chain", map[string][]byte{"tls.crt": append(append([]byte{}, good...), big...), "tls.key": key}, ""},
		{"nothing", nil, "it has no certificates and keys"},
		{"no key", map[string][]byte{"tls.crt": good}, "it has no tls.crt and tls.key"},
		{"another's key", map[string][]byte{"tls.crt": good, "tls.key": bigKey}, "tls.key is not the key of the first certificate in tls.crt"},
		{"a short key", map[string][]byte{"tls.crt": small, "tls.key": smallKey}, "1024 bits"},
		{"an odd curve", map[string][]byte{"tls.crt": odd, "tls.key": oddKey}, "P-224"},
		{"Ed25519", map[string][]byte{"tls.crt": ed, "tls.key": edPEM}, "Ed25519"},
		{"no PEM", map[string][]byte{"tls.crt": []byte("hunter2hunter2"), "tls.key": key}, "tls.crt has no certificate in PEM"},
		{"no DER", map[string][]byte{"tls.crt": broken, "tls.key": key}, "tls.crt has a certificate, its number 1, that can't be read"},
		{"half of a key", map[string][]byte{"tls.crt": good, "tls.key": key[:len(key)/2]}, "tls.key has no private key in PEM"},
		{
			"encrypted",
			map[string][]byte{"tls.crt": good, "tls.key": []byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\naHVudGVyMg==\n-----END ENCRYPTED PRIVATE KEY-----\n")},
			"encrypted",
		},
		{"a bad list", map[string][]byte{"tls.crt": good, "tls.key": key, "ca.crl": []byte("hunter2hunter2")}, "ca.crl has no list"},
		{"a bad staple", map[string][]byte{"tls.crt": good, "tls.key": key, "tls.ocsp-staple": []byte("hunter2hunter2")}, "tls.ocsp-staple"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := plugintest.Start(t, sds.Plugin(), nil)
			h.Update("v1/Secret", []*sdk.Row{row("edge/web", c.data)})
			s := ask(t, h, proxy(t, "edge", "gateway"), "kubernetes://web")
			faults := h.Faults()
			if (s == nil) != (c.why != "") || len(faults) > 1 || (len(faults) == 1) != (c.why != "") {
				t.Fatalf("%v; %v", s, faults)
			}
			for _, f := range faults {
				if !strings.Contains(f.Reason, c.why) || strings.Contains(f.Reason, "hunter2") {
					t.Errorf("the fault is %q", f.Reason)
				}
			}
		})
	}
}

// A change goes to the views alone that want the secret; what becomes invalid stays as it was, what
// goes is told to be absent.
func TestChanges(t *testing.T) {
	chain, key := pair(t, ec(t, elliptic.P256()))
	next, nextKey := pair(t, ec(t, elliptic.P256()))
	h := plugintest.Start(t, sds.Plugin(), nil)
	h.Update("clusters", []*sdk.Row{{Key: "east"}})
	set := func(chain, key []byte) {
		h.Update("v1/Secret", []*sdk.Row{row("edge/web", map[string][]byte{"tls.crt": chain, "tls.key": key})})
	}
	set(chain, key)
	h.Update("v1/Secret", []*sdk.Row{row("edge/other", map[string][]byte{"tls.crt": chain, "tls.key": key})})
	a, b, other := proxy(t, "edge", "a"), proxy(t, "edge", "a"), proxy(t, "edge", "b")
	const name = "kubernetes://web"
	served := func(p *sdk.Proxy) string {
		return string(ask(t, h, p, name).GetTlsCertificate().GetCertificateChain().GetInlineBytes())
	}
	if served(a) != string(chain) || served(b) != string(chain) || ask(t, h, other, "kubernetes://other") == nil {
		t.Fatal("not served")
	}
	if h.Placement(a.Connection)[secretType] != h.Placement(b.Connection)[secretType] {
		t.Error("proxies of one account have views of their own")
	}
	if h.Placement(a.Connection)[secretType] == h.Placement(other.Connection)[secretType] {
		t.Error("proxies of two accounts share a view")
	}
	bodies := h.Bodies()
	set(next, nextKey)
	if served(a) != string(next) {
		t.Error("the new certificate is not served")
	}
	if got := h.Bodies(); got != bodies+1 {
		t.Errorf("%d bodies were sent, want one", got-bodies)
	}
	set(next, key)
	if faults := h.Faults(); served(a) != string(next) || len(faults) != 1 || !strings.Contains(faults[0].Reason, "last good version stays") {
		t.Errorf("what is broken: %v", faults)
	}
	because := h.Explain(secretType, h.Placement(a.Connection)[secretType], name)
	if len(because.Rows) != 1 || because.Rows[0].Key != "edge/web" || len(because.Missing) != 1 || because.Missing[0].Key != "edge/web@east" {
		t.Errorf("explained by %v, %v", because.Rows, because.Missing)
	}
	h.Update("v1/Secret", nil, "edge/web")
	if ask(t, h, a, name) != nil {
		t.Error("what is gone is served")
	}
	h.Detach(a.Connection)
	h.Detach(b.Connection)
	h.Settle()
}

func TestConfig(t *testing.T) {
	if got, _ := plugintest.Refusal(t, sds.Plugin(), `{"aliases": {}}`); got != "aliases" {
		t.Errorf("refused for %q", got)
	}
	h := plugintest.Start(t, sds.Plugin(), `{"clusterAliases": {"east": "west"}}`)
	chain, key := pair(t, ec(t, elliptic.P256()))
	h.Update("clusters", []*sdk.Row{{Key: "west"}})
	h.Update("v1/Secret", []*pb.Row{row("edge/web@west", map[string][]byte{"tls.crt": chain, "tls.key": key})})
	if ask(t, h, proxy(t, "edge", "a"), "kubernetes://web") == nil {
		t.Error("the cluster's secret is not found by its alias")
	}
}

// requested are the objects that sources are asked for, in order, each of a row of its own.
func requested(h *plugintest.Harness) (all []string) {
	for _, row := range h.Rows(secrets.Requests) {
		q, err := secrets.DecodeRequest(row)
		switch {
		case err != nil || len(q.Objects) > 1:
			all = append(all, "a bad row: "+row.Key)
		case len(q.Objects) == 1:
			all = append(all, q.Objects[0].String())
		}
	}
	slices.Sort(all)
	return all
}

// With Kubernetes what is wanted is asked for, and what has no answer yet is not said to be absent.
func TestRequests(t *testing.T) {
	h := plugintest.Start(t, sds.Plugin(), `{"kubernetes": true}`)
	h.WaitSynced()
	chain, key := pair(t, ec(t, elliptic.P256()))
	h.Update("clusters", []*sdk.Row{{Key: "east"}})
	p := proxy(t, "edge", "gw")
	h.Attach(p)
	view := h.Placement(p.Connection)[secretType]
	const name = "kubernetes://web-cacert"
	h.Want(secretType, view, name, "kubernetes://web", "kubernetes://other/web")
	object := func(name, cluster string) secrets.Object {
		return secrets.Object{Kind: secrets.Secret, Namespace: "edge", Name: name, Cluster: cluster}
	}
	account := secrets.Account{Cluster: "east", Namespace: "edge", Name: "gw"}
	h.WaitRows(secrets.Requests, func(rows map[string]*sdk.Row) bool {
		row := rows["edge/gw@east"]
		if row == nil || len(rows) != 5 {
			return false
		}
		q, err := secrets.DecodeRequest(row)
		return err == nil && q.Account == account && len(q.Objects) == 0
	})
	if got := requested(h); !slices.Equal(got, []string{
		"Secret edge/web", "Secret edge/web of cluster east", "Secret edge/web-cacert", "Secret edge/web-cacert of cluster east",
	}) {
		t.Errorf("before rights are known %q are asked for: whom to trust needs none", got)
	}
	said := func() (body []byte, said bool) {
		h.Settle()
		body, said = h.View(view)[name]
		return body, said
	}
	if _, is := said(); is {
		t.Error("it is said to be absent before anybody was asked")
	}
	missing := func(o secrets.Object) *sdk.Row {
		return &sdk.Row{Key: o.AbsenceKey(), Payload: secrets.Absence{Reason: "there is no " + o.String()}.Encode()}
	}
	h.Update(secrets.Absences, []*sdk.Row{missing(object("web-cacert", "east")), missing(object("web-cacert", "")), missing(object("web", "east"))})
	h.Update(secrets.Rights, []*sdk.Row{{Key: account.Key(), Payload: secrets.Right{Allowed: true}.Encode()}})
	if _, is := said(); is {
		t.Error("it is said to be absent before all was answered")
	}
	h.Update("v1/Secret", []*sdk.Row{row("edge/web", map[string][]byte{"tls.crt": chain, "tls.key": key, "ca.crt": chain})})
	if body, is := said(); !is || body == nil {
		t.Error("what was found is not served")
	}
	// A source that is away takes nothing away; a right that goes does.
	h.Update("v1/Secret", nil, "edge/web")
	if body, is := said(); !is || body == nil {
		t.Error("what has no answer any more is gone")
	}
	h.Update(secrets.Rights, []*sdk.Row{{Key: account.Key(), Payload: secrets.Right{Reason: "it may not"}.Encode()}})
	if body, is := said(); !is || body == nil {
		t.Error("whom to trust is no secret, and an account without the right isn't told")
	}
	if body, is := h.View(view)["kubernetes://web"]; !is || body != nil {
		t.Error("an account without the right is served")
	}
	h.Detach(p.Connection)
	h.DropView(secretType, view)
	h.WaitRows(secrets.Requests, func(rows map[string]*sdk.Row) bool { return len(rows) == 0 })
}

// What can't be served is a fault of the rows that name it, until it is there: those of the proxy's
// namespace, and of others where it has none.
func TestFaultsOfWhatNames(t *testing.T) {
	chain, key := pair(t, ec(t, elliptic.P256()))
	h := plugintest.Start(t, sds.Plugin(), nil)
	spec := func(key string, m proto.Message) *sdk.Row {
		payload, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return &sdk.Row{Key: key, Payload: payload}
	}
	gateway := func(tls *networking.ServerTLSSettings) *networking.Gateway {
		return &networking.Gateway{Servers: []*networking.Server{{}, {Tls: tls}}}
	}
	client := func(name string) *networking.TrafficPolicy {
		return &networking.TrafficPolicy{Tls: &networking.ClientTLSSettings{CredentialName: name}}
	}
	h.Update(kinds.Gateway, []*sdk.Row{
		spec("edge/one", gateway(&networking.ServerTLSSettings{CredentialName: "web"})),
		spec("edge/several",
			gateway(&networking.ServerTLSSettings{CredentialNames: []string{"a", "kubernetes://web"}, CaCertCredentialName: "configmap://edge/roots"})),
		spec("other/one", gateway(&networking.ServerTLSSettings{CredentialName: "web", CaCertCredentialName: "sds://far-cacert"})),
	})
	h.Update(kinds.DestinationRule, []*sdk.Row{
		spec("edge/mesh", &networking.DestinationRule{TrafficPolicy: client("out")}),
		spec("edge/port", &networking.DestinationRule{
			TrafficPolicy: &networking.TrafficPolicy{PortLevelSettings: []*networking.TrafficPolicy_PortTrafficPolicy{{Tls: client("port").Tls}}},
		}),
		spec("edge/subset", &networking.DestinationRule{Subsets: []*networking.Subset{{TrafficPolicy: client("kubernetes://edge/subset")}, {}}}),
	})
	p := proxy(t, "edge", "gateway")
	named := func(name string, change func()) (rows []string) {
		before := len(h.Faults())
		change()
		for _, f := range h.Faults()[before:] {
			if f.What != "secret "+name+" for proxies of edge/gateway" {
				continue
			}
			for _, r := range f.Rows {
				if r.Table == kinds.Gateway || r.Table == kinds.DestinationRule {
					rows = append(rows, strings.TrimPrefix(r.Table, "networking.istio.io/")+" "+r.Key)
				}
			}
		}
		slices.Sort(rows)
		return rows
	}
	for name, want := range map[string]string{
		"kubernetes://web":             "Gateway edge/one, Gateway edge/several",
		"kubernetes://web-cacert":      "Gateway edge/one, Gateway edge/several",
		"kubernetes://a":               "Gateway edge/several",
		"configmap://edge/roots":       "Gateway edge/several",
		"kubernetes://far-cacert":      "Gateway other/one",
		"kubernetes://out":             "DestinationRule edge/mesh",
		"kubernetes://out-cacert":      "DestinationRule edge/mesh",
		"kubernetes://port":            "DestinationRule edge/port",
		"kubernetes://edge/subset":     "DestinationRule edge/subset",
		"kubernetes://nobody-names-it": "",
	} {
		got := strings.Join(named(name, func() {
			if s := ask(t, h, p, name); s != nil {
				t.Fatalf("%s is served", name)
			}
		}), ", ")
		if got != want {
			t.Errorf("%s is a fault of %s, not of %s", name, got, want)
		}
	}
	secret := func(data map[string][]byte) func() {
		return func() { h.Update(secrets.SecretTable, []*sdk.Row{row("edge/web", data)}) }
	}
	if got := strings.Join(named("kubernetes://web", secret(map[string][]byte{"tls.crt": chain})), ", "); got != "Gateway edge/one, Gateway edge/several" {
		t.Errorf("without a key it is a fault of %s", got)
	}
	if got := named("kubernetes://web", secret(map[string][]byte{"tls.crt": chain, "tls.key": key})); got != nil || ask(t, h, p, "kubernetes://web") == nil {
		t.Errorf("now that it is there it is a fault of %s", got)
	}
	gone := func() { h.Update(kinds.Gateway, nil, "edge/one", "edge/several") }
	if got := strings.Join(named("kubernetes://web-cacert", gone), ", "); got != "Gateway other/one" {
		t.Errorf("when its own are gone it is a fault of %s", got)
	}
}
