package kinds

import (
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
)

const marked = "aHVudGVyMi1tYXJrZWQ=" // base64

// What is wrong with a Secret is said with its place, and without anything of its values.
func TestSecrets(t *testing.T) {
	head := "apiVersion: v1\nkind: Secret\nmetadata: {name: web, namespace: edge}\n"
	for _, c := range []struct{ name, text, why string }{
		{"no base64", head + "data:\n  tls.crt: '" + marked + "?'\n", "a.yaml:5:12: Secret edge/web: data[tls.crt]: is not in base64"},
		{"no certificate", head + "data:\n  tls.crt: " + marked + "\n  tls.key: " + marked + "\n", "tls.crt has no certificate in PEM"},
		{"a number", head + "stringData:\n  tls.crt: 12345678\n", "stringData[tls.crt]: expected a string"},
		{"a list", head + "data: [" + marked + "]\n", "data: expected a mapping"},
		{"twice", head + "data:\n  tls.crt: " + marked + "\n  tls.crt: " + marked + "\n", "has a key twice"},
		{"no YAML", head + "data:\n  tls.crt: \"" + marked + "\\q\"\n", "Secret edge/web: not YAML"},
		{"cut", head + "data:\n  tls.crt: [" + marked, "Secret edge/web: not YAML"},
		{"too large", head + "stringData:\n  ca.crt: " + strings.Repeat("x", 800<<10) + "\n", "it has 819200 bytes"},
	} {
		docs := Reader{Secrets: true}.Read("a.yaml", []byte(c.text))
		if len(docs) != 1 || docs[0].Row != nil || docs[0].Table != secrets.SecretTable || docs[0].Key() != "edge/web" {
			t.Errorf("%s: %+v", c.name, docs)
			continue
		}
		said := ""
		for _, f := range docs[0].Faults {
			said += f.Error() + "\n"
		}
		if !strings.Contains(said, c.why) || strings.Contains(said, marked[:8]) || strings.Contains(said, "hunter2") || strings.Contains(said, "12345678") {
			t.Errorf("%s: %s", c.name, said)
		}
	}
	// Those without certificates are nobody's concern, and who doesn't ask for Secrets is given
	// none.
	for _, text := range []string{head + "data: {password: " + marked + "}\n", strings.Replace(head, "Secret", "ConfigMap", 1) + "data: {tls.key: x}\n"} {
		if docs := (Reader{Secrets: true}).Read("a.yaml", []byte(text)); len(docs) != 1 || docs[0].Foreign == "" || len(docs[0].Faults) > 0 {
			t.Errorf("%s: %+v", text, docs)
		}
	}
	if docs := Read("a.yaml", []byte(head+"data: {tls.crt: "+marked+"}\n")); len(docs) != 1 || docs[0].Foreign != "v1/Secret" {
		t.Errorf("%+v", docs)
	}
}
