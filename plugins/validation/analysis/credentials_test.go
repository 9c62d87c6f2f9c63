package analysis

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"
)

// pair makes a certificate of its own key, in PEM, which is good for an hour.
func pair(t *testing.T) (chain, key string) {
	t.Helper()
	return pairUntil(t, time.Now().Add(time.Hour))
}

// pairUntil is pair until a time.
func pairUntil(t *testing.T, end time.Time) (chain, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, of, of, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	var c, k bytes.Buffer
	_, _ = pem.Encode(&c, &pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.Encode(&k, &pem.Block{Type: "PRIVATE KEY", Bytes: raw})
	return c.String(), k.String()
}

// credential is a Secret or a ConfigMap, NAMESPACE/NAME, with values: names and texts, in turn.
func credential(kind, key string, values ...string) string {
	namespace, name, _ := strings.Cut(key, "/")
	field := "stringData"
	if kind == "ConfigMap" {
		field = "data"
	}
	text := fmt.Sprintf("---\napiVersion: v1\nkind: %s\nmetadata: {name: %s, namespace: %s}\n", kind, name, namespace)
	for i := 0; i < len(values); i += 2 {
		if i == 0 {
			text += field + ":\n"
		}
		text += fmt.Sprintf("  %s: %q\n", values[i], values[i+1])
	}
	return text
}

func serverTLS(tls string) string {
	return "---\napiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: gw, namespace: edge}\nspec:\n  selector: {istio: gw}\n  servers:\n" +
		"  - {hosts: [\"*\"], port: {number: 443, name: https, protocol: HTTPS}, tls: " + tls + "}\n"
}

func clientTLS(more, tls string) string {
	return "---\napiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: rule, namespace: edge}\nspec:\n  host: bank.example\n" + more +
		"  trafficPolicy: {tls: " + tls + "}\n"
}

// TestCredentials: what is named and isn't there, or lacks something, is told where it is named,
// and nothing of any value is.
func TestCredentials(t *testing.T) {
	chain, key := pair(t)
	_, strange := pair(t)
	late, lateKey := pairUntil(t, time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC))
	full := []string{"tls.crt", chain, "tls.key", key, "ca.crt", chain}
	const selected = "  workloadSelector: {matchLabels: {app: a}}\n"
	other := credential("Secret", "elsewhere/other", full...)
	const first, missing, unusable, client = "spec.servers[0].tls.", "IST0101 ", "IST0161 ", "COX3009 "
	for _, c := range []struct{ name, text, want, words string }{
		{"all is there", serverTLS("{mode: MUTUAL, credentialName: web}") + credential("Secret", "edge/web", full...), "", ""},
		{"values that are not in the file", serverTLS("{mode: MUTUAL, credentialName: web}") + credential("Secret", "edge/web"), "", ""},
		{"no Secret is known", serverTLS("{mode: MUTUAL, credentialName: web}"), "", ""},
		{"none", serverTLS("{mode: SIMPLE, credentialName: web}") + other, missing + first + "credentialName", `not found: "web"`},
		{"none, with roots", serverTLS("{mode: MUTUAL, credentialName: web}") + other, missing + first + "credentialName", `not found: "web"`},
		{"none of several", serverTLS("{mode: SIMPLE, credentialNames: [other, web]}") + credential("Secret", "edge/other", full...), missing + first + "credentialNames[1]", `"web"`},
		{"in another namespace", serverTLS("{mode: SIMPLE, credentialName: other}") + other, missing + first + "credentialName", "namespace"},
		{"by its namespace", serverTLS("{mode: SIMPLE, credentialName: kubernetes-gateway://elsewhere/other}") + other, "", ""},
		{"of others", serverTLS("{mode: SIMPLE, credentialName: sds://web}") + other, "", ""},
		{"no key", serverTLS("{mode: SIMPLE, credentialName: web}") + credential("Secret", "edge/web", "tls.crt", chain), unusable + first + "credentialName", "it has no tls.crt and tls.key"},
		{"another's key", serverTLS("{mode: SIMPLE, credentialName: web}") + credential("Secret", "edge/web", "tls.crt", chain, "tls.key", strange), unusable + first + "credentialName", "tls.key is not the key"},
		{"of a time that is over", serverTLS("{mode: SIMPLE, credentialName: web}") + credential("Secret", "edge/web", "tls.crt", late, "tls.key", lateKey), unusable + first + "credentialName", "has expired, on 2020-01-02"},
		{"no PEM", serverTLS("{mode: SIMPLE, credentialName: web}") + credential("Secret", "edge/web", "tls.crt", "hunter2", "tls.key", "hunter2"), unusable + first + "credentialName", "has no certificate in PEM"},
		{"no roots", serverTLS("{mode: MUTUAL, credentialName: web}") + credential("Secret", "edge/web", full[:4]...), unusable + first + "credentialName", "it has no ca.crt"},
		{"roots that nobody needs", serverTLS("{mode: SIMPLE, credentialName: web}") + credential("Secret", "edge/web", full[:4]...), "", ""},
		{"roots apart", serverTLS("{mode: MUTUAL, credentialName: web}") + credential("Secret", "edge/web", full[:4]...) + credential("Secret", "edge/web-cacert", "cacert", chain), "", ""},
		{"roots of a name", serverTLS("{mode: MUTUAL, credentialName: web, caCertCredentialName: ca-cacert}") + credential("Secret", "edge/web", full[:4]...), missing + first + "caCertCredentialName", `caCertCredentialName not found: "ca"`},
		{"roots of a ConfigMap", serverTLS("{mode: MUTUAL, credentialName: web, caCertCredentialName: \"configmap://edge/roots\"}") + credential("Secret", "edge/web", full[:4]...) + credential("ConfigMap", "edge/other", "ca.crt", chain), missing + first + "caCertCredentialName", `"configmap://edge/roots"`},
		{"a ConfigMap without roots", serverTLS("{mode: MUTUAL, credentialName: web, caCertCredentialName: \"configmap://edge/roots\"}") + credential("Secret", "edge/web", full[:4]...) + credential("ConfigMap", "edge/roots", "notes", "x"), unusable + first + "caCertCredentialName", "ConfigMap roots can't be used"},
		{"a client", clientTLS(selected, "{mode: MUTUAL, credentialName: web}") + other, missing + "spec.trafficPolicy.tls.credentialName", `"web"`},
		{"a client's roots", clientTLS(selected, "{mode: SIMPLE, credentialName: web}") + credential("Secret", "edge/web", full[:4]...), client + "spec.trafficPolicy.tls.credentialName", "it has no ca.crt"},
		{"a client that verifies nothing", clientTLS(selected, "{mode: SIMPLE, credentialName: web, insecureSkipVerify: true}") + other, "", ""},
		{"a gateway's client", clientTLS("", "{mode: MUTUAL, credentialName: other}") + other, "", ""},
		{"a gateway's client, of none", clientTLS("", "{mode: MUTUAL, credentialName: web}") + other, missing + "spec.trafficPolicy.tls.credentialName", `"web"`},
	} {
		var r Reader
		r.Add("a.yaml", []byte(c.text))
		for _, f := range r.Faults {
			t.Errorf("%s: %v", c.name, f)
		}
		var got []string
		for _, f := range r.All() {
			if f.Code != "IST0101" && f.Code != "COX3009" && f.Code != "IST0161" || strings.HasPrefix(f.Field, "spec.host") {
				continue
			}
			if got = append(got, f.Code+" "+f.Field); !strings.Contains(f.Message+f.Hint, c.words) || strings.Contains(f.Message+f.Hint, "hunter2") {
				t.Errorf("%s: it says %q, %q", c.name, f.Message, f.Hint)
			}
		}
		var want []string
		if c.want != "" {
			want = []string{c.want}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: found %q, want %q", c.name, got, want)
		}
	}
}
