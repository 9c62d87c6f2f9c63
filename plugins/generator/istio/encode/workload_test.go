package encode

import (
	"testing"

	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// TestSecrets has the rules of Envoy's TlsCertificate, SdsSecretConfig and PathConfigSource.
func TestSecrets(t *testing.T) {
	for _, c := range []struct {
		secrets         Secrets
		workload, files string
	}{
		{
			Bootstrap,
			`{"name":"default"}`,
			`{"tlsCertificates":[{"certificateChain":{"filename":"c"},"privateKey":{"filename":"k"}}],"validationContext":{"trustedCa":{"filename":"r"}}}`,
		},
		{
			"/certs",
			`{"name":"default","sdsConfig":{"pathConfigSource":{"path":"/certs/default.json","watchedDirectory":{"path":"/certs"}},"resourceApiVersion":"V3"}}`,
			`{"tlsCertificates":[{"certificateChain":{"filename":"c"},"privateKey":{"filename":"k"}}],"validationContext":{"trustedCa":{"filename":"r"}}}`,
		},
		{
			Nowhere,
			"",
			`{"tlsCertificates":[{"certificateChain":{"filename":"c"},"privateKey":{"filename":"k"}}],"validationContext":{"trustedCa":{"filename":"r"}}}`,
		},
	} {
		if c.secrets.Any() != (c.workload != "") {
			t.Errorf("%s: any %v", c.secrets, c.secrets.Any())
		}
		if c.workload != "" {
			equal(t, c.secrets.Workload(WorkloadCertificate), &tls.SdsSecretConfig{}, c.workload)
		}
		common := &tls.CommonTlsContext{}
		c.secrets.Show(common, "c", "k")
		c.secrets.Trust(common, &tls.CertificateValidationContext{}, "r")
		equal(t, common, &tls.CommonTlsContext{}, c.files)
	}
}

func TestSecretsOfAgent(t *testing.T) {
	common := &tls.CommonTlsContext{}
	Agent.Show(common, "c", "k")
	Agent.Trust(common, &tls.CertificateValidationContext{}, SystemRoots)
	if got := common.TlsCertificateSdsSecretConfigs[0].Name; got != "file-cert:c~k" {
		t.Errorf("certificate %s", got)
	}
	if got := common.GetCombinedValidationContext().ValidationContextSdsSecretConfig.Name; got != "file-root:system" {
		t.Errorf("roots %s", got)
	}
	if s := Agent.Workload(WorkloadRoots); s.SdsConfig.InitialFetchTimeout.AsDuration() != 0 {
		t.Errorf("%v: a proxy waits as long as it takes", s)
	}
}

func equal(t *testing.T, got, want proto.Message, text string) {
	t.Helper()
	if err := protojson.Unmarshal([]byte(text), want); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
