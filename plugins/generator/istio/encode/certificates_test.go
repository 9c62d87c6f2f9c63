package encode

import (
	"testing"

	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
)

func TestCertificates(t *testing.T) {
	for _, c := range []struct {
		in         Certificates
		own, roots string
	}{
		{Certificates{}, "default", "ROOTCA"},
		{Certificates{Chain: "/c", Key: "/k", Root: "/r"}, "file-cert:/c~/k", "file-root:/r"},
		{Certificates{Chain: "/c"}, "default", "ROOTCA"},
		{Certificates{Root: "/r"}, "default", "file-root:/r"},
		{Certificates{From: Bootstrap, Chain: "/c", Key: "/k"}, "/c", "ROOTCA"},
		{Certificates{From: Bootstrap, Root: "/r"}, "default", "/r"},
		{Certificates{From: "/certs"}, "default", "ROOTCA"},
	} {
		var out tls.CommonTlsContext
		c.in.Show(&out)
		c.in.Trust(&out, &tls.CertificateValidationContext{})
		if own, roots := shown(&out), trusted(&out); own != c.own || roots != c.roots {
			t.Errorf("%+v: %s and %s", c.in, own, roots)
		}
		for _, s := range out.TlsCertificateSdsSecretConfigs {
			if waits := s.GetSdsConfig().GetInitialFetchTimeout() != nil; waits != (c.in.From == Agent && c.own == "default") {
				t.Errorf("%+v: only what an agent serves is waited for without end", c.in)
			}
		}
	}
	if (Certificates{From: Nowhere}).Any() || !(Certificates{From: Nowhere, Chain: "/c", Key: "/k"}).Any() {
		t.Error("files are something to show, no agent and no files nothing")
	}
}

func shown(c *tls.CommonTlsContext) string {
	for _, s := range c.TlsCertificateSdsSecretConfigs {
		return s.Name
	}
	return c.TlsCertificates[0].CertificateChain.GetFilename()
}

func trusted(c *tls.CommonTlsContext) string {
	if roots := c.GetValidationContext().GetTrustedCa().GetFilename(); roots != "" {
		return roots
	}
	return c.GetCombinedValidationContext().GetValidationContextSdsSecretConfig().GetName()
}

func TestFilesThatAnotherReads(t *testing.T) {
	var out tls.CommonTlsContext
	own := Certificates{From: Reader, Chain: "/c", Key: "/k"}
	own.Show(&out)
	own.Trust(&out, &tls.CertificateValidationContext{})
	if place(out.TlsCertificateSdsSecretConfigs[0]) != "file-cert:/c~/k of sds-files-grpc" || trusted(&out) != "ROOTCA" {
		t.Errorf("files are the reader's, the mesh's roots the agent's: %v", &out)
	}
}
