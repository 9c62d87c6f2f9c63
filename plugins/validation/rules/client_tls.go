package rules

import networking "istio.io/api/networking/v1alpha3"

const (
	missingClientCert = "COX2207"
	clashingClientTLS = "COX2208"
)

// clientTLS checks how a client begins TLS. Source: Istio API, ClientTLSSettings.
func (c *checker) clientTLS(at path, t *networking.ClientTLSSettings) {
	if t == nil {
		return
	}
	if t.InsecureSkipVerify.GetValue() {
		c.unverified(at, t)
	}
	own := t.Mode == networking.ClientTLSSettings_SIMPLE || t.Mode == networking.ClientTLSSettings_MUTUAL
	switch {
	case own && t.CredentialName != "":
		if t.ClientCertificate+t.PrivateKey+t.CaCertificates+t.CaCrl != "" {
			c.fail(clashingClientTLS, at,
				"cannot specify client certificates or CA certificate if credentialName is set").hint("the secret has them; remove the files")
		}
	case t.Mode == networking.ClientTLSSettings_MUTUAL:
		if t.ClientCertificate == "" {
			c.fail(missingClientCert, at.field("clientCertificate"), "client certificate required for mutual tls").hint(
				"name files, or a secret with credentialName",
			)
		}
		if t.PrivateKey == "" {
			c.fail(missingClientCert, at.field("privateKey"), "private key required for mutual tls").hint("name files, or a secret with credentialName")
		}
	case t.Mode == networking.ClientTLSSettings_ISTIO_MUTUAL && t.ClientCertificate+t.PrivateKey+t.CaCertificates+t.CredentialName != "":
		c.warn(clashingClientTLS, at, "ISTIO_MUTUAL uses the workload's own certificates; those given here are ignored").hint("remove them, or choose MUTUAL")
	}
}

// unverified checks settings that make no sense where servers are not verified.
func (c *checker) unverified(at path, t *networking.ClientTLSSettings) {
	simple := t.Mode == networking.ClientTLSSettings_SIMPLE
	mutual := t.Mode == networking.ClientTLSSettings_MUTUAL
	if simple && (t.CaCertificates != "" || t.CredentialName != "") || mutual && t.CaCertificates != "" {
		c.fail(clashingClientTLS, at,
			"cannot specify CaCertificates or CredentialName when InsecureSkipVerify is set true").hint("nothing is verified then; keep one")
	}
	if (simple || mutual) && len(t.SubjectAltNames) > 0 {
		c.fail(clashingClientTLS, at.field("subjectAltNames"),
			"cannot specify SubjectAltNames when InsecureSkipVerify is set true").hint("nothing is verified then; keep one")
	}
}
