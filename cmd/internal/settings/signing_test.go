package settings

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestSigning: istiod's variables of who signs count, and what they can't be is said.
func TestSigning(t *testing.T) {
	load := func(environ ...string) (Settings, error) {
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		Flags(fs, Defaults())
		s, _, err := Load(fs, environ)
		return s, err
	}
	s, err := load("EXTERNAL_CA=ISTIOD_RA_KUBERNETES_API", "K8S_SIGNER=issuers.example.com/mesh",
		"CERT_SIGNER_DOMAIN=issuers.example.com", "PILOT_CERT_PROVIDER=k8s.io/issuers.example.com/port")
	if g := s.Callers.Signing; err != nil || g.ExternalCA != ExternalKubernetes ||
		g.K8sSigner != "issuers.example.com/mesh" || g.SignerDomain != "issuers.example.com" ||
		g.PortSigner() != "issuers.example.com/port" || !g.MakesPort() {
		t.Errorf("%+v, %v", s.Callers.Signing, err)
	}
	for _, c := range []struct {
		provider, address, cert string
	}{{"istiod", "127.0.0.1:15012", ""}, {"none", "", ""}, {"custom", "127.0.0.1:15012", WellKnown + "/tls/tls.crt"}} {
		s, err := load("PILOT_CERT_PROVIDER=" + c.provider)
		if err != nil || s.SecureAddress() != c.address || s.Mounted().CertFile != c.cert || s.Callers.Signing.MakesPort() != (c.provider == "istiod") {
			t.Errorf("%s: %q, %+v, %v", c.provider, s.SecureAddress(), s.Mounted(), err)
		}
	}
	if s, err := load("PILOT_CERT_PROVIDER=none", "COXSWAIN_TLS_CERT_FILE=a", "COXSWAIN_TLS_KEY_FILE=b",
		"COXSWAIN_CA_CERT_FILE=c"); err != nil || s.SecureAddress() == "" || s.Mounted().CertFile != "a" {
		t.Errorf("files with none: %q, %v", s.SecureAddress(), err)
	}
	for setting, words := range map[string]string{
		"PILOT_CERT_PROVIDER=kubernetes":  "pilotCertProvider",
		"PILOT_CERT_PROVIDER=k8s.io/mesh": "pilotCertProvider", "EXTERNAL_CA=ISTIOD_RA_ISTIO_API": "externalCA",
		"EXTERNAL_CA=ISTIOD_RA_KUBERNETES_API": "k8sSigner",
	} {
		if _, err := load(setting); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", setting, err)
		}
	}
}
