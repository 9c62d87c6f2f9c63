package rules

import (
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// Codes about TLS.
const (
	missingServerCert = "COX2203"
	clashingServerTLS = "COX2204"
	badCipher         = "COX2206"
)

// serverTLS checks how a listener terminates TLS. Source: Istio API, ServerTLSSettings.
func (c *checker) serverTLS(at path, t *networking.ServerTLSSettings) {
	if t == nil {
		return
	}
	c.ciphers(at.field("cipherSuites"), t.CipherSuites)
	if t.MinProtocolVersion != 0 && t.MaxProtocolVersion != 0 && t.MinProtocolVersion > t.MaxProtocolVersion {
		c.warn(clashingServerTLS, at.field("maxProtocolVersion"),
			"%s is older than minProtocolVersion %s: no client can connect", t.MaxProtocolVersion,
			t.MinProtocolVersion)
	}
	switch t.Mode {
	case networking.ServerTLSSettings_ISTIO_MUTUAL:
		c.meshServerTLS(at, t)
	case networking.ServerTLSSettings_PASSTHROUGH, networking.ServerTLSSettings_AUTO_PASSTHROUGH:
		if usesCertificates(t) {
			c.warn(clashingServerTLS, at, "%s mode does not use certificates, they will be ignored", t.Mode).hint("remove them, or choose SIMPLE or MUTUAL")
		}
	default:
		c.ownServerTLS(at, t)
	}
}

func usesCertificates(t *networking.ServerTLSSettings) bool {
	return t.ServerCertificate+t.PrivateKey+t.CaCertificates+t.CredentialName+t.CaCrl+t.CaCertCredentialName != "" ||
		len(t.CredentialNames)+len(t.TlsCertificates) > 0
}

// meshServerTLS is for the mode that uses the workload's own certificate.
func (c *checker) meshServerTLS(at path, t *networking.ServerTLSSettings) {
	for _, f := range []struct {
		field, name string
		given       bool
	}{
		{"serverCertificate", "server certificate", t.ServerCertificate != ""},
		{"privateKey", "private key", t.PrivateKey != ""},
		{"caCertificates", "CA bundle", t.CaCertificates != ""},
		{"caCrl", "CRL", t.CaCrl != ""},
		{"credentialName", "credentialName", t.CredentialName != ""},
		{"credentialNames", "credentialNames", len(t.CredentialNames) > 0},
		{"tlsCertificates", "tlsCertificates", len(t.TlsCertificates) > 0},
	} {
		if f.given {
			c.fail(clashingServerTLS, at.field(f.field), "ISTIO_MUTUAL TLS cannot have associated %s: it uses the workload's own", f.name)
		}
	}
}

// ownServerTLS is for the modes with certificates of one's own.
func (c *checker) ownServerTLS(at path, t *networking.ServerTLSSettings) {
	ways := 0
	for _, given := range []bool{
		t.CredentialName != "", len(t.CredentialNames) > 0, t.ServerCertificate != "" && t.PrivateKey != "", len(t.TlsCertificates) > 0,
	} {
		if given {
			ways++
		}
	}
	if ways > 1 {
		c.fail(clashingServerTLS, at, "only one of credential_name, credential_names, server_certificate with private_key, or tls_certificates can be set")
	}
	if t.CredentialName != "" || len(t.CredentialNames) > 0 {
		return
	}
	c.serverFiles(at, t)
}

// serverFiles checks certificates in files.
func (c *checker) serverFiles(at path, t *networking.ServerTLSSettings) {
	if len(t.TlsCertificates) == 0 {
		c.certificatePair(at, t.Mode, t.ServerCertificate, t.PrivateKey)
	}
	for i, each := range t.TlsCertificates {
		c.certificatePair(at.field("tlsCertificates").index(i), t.Mode, each.GetServerCertificate(), each.GetPrivateKey())
	}
	switch {
	case t.Mode == networking.ServerTLSSettings_SIMPLE && t.CaCrl != "":
		c.fail(clashingServerTLS, at.field("caCrl"), "CRL is not supported with SIMPLE TLS").hint(
			"clients show certificates in modes MUTUAL and OPTIONAL_MUTUAL only",
		)
	case t.Mode != networking.ServerTLSSettings_SIMPLE && t.CaCertificates == "" && t.CaCertCredentialName == "":
		c.fail(missingServerCert, at.field("caCertificates"), "%s TLS requires a client CA bundle", t.Mode)
	}
}

func (c *checker) certificatePair(at path, mode networking.ServerTLSSettings_TLSmode, certificate, key string) {
	if certificate == "" {
		c.fail(missingServerCert, at.field("serverCertificate"), "%s TLS requires a server certificate", mode).hint(
			"name files, or a secret with credentialName",
		)
	}
	if key == "" {
		c.fail(missingServerCert, at.field("privateKey"), "%s TLS requires a private key", mode).hint("name files, or a secret with credentialName")
	}
}

// cipherSuites that proxies know. Source: Envoy, TlsParameters.cipher_suites, with BoringSSL's
// other names.
var cipherSuites = []string{
	"AES128-GCM-SHA256", "AES128-SHA", "AES256-GCM-SHA384", "AES256-SHA", "DES-CBC3-SHA",
	"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-AES256-SHA",
	"ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-PSK-AES128-CBC-SHA", "ECDHE-PSK-AES256-CBC-SHA", "ECDHE-PSK-CHACHA20-POLY1305",
	"ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-SHA", "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-SHA",
	"ECDHE-RSA-CHACHA20-POLY1305", "PSK-AES128-CBC-SHA", "PSK-AES256-CBC-SHA",
	"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256",
}

// ciphers warns of names that are left out of what proxies get.
func (c *checker) ciphers(at path, list []string) {
	seen := map[string]bool{}
	for i, each := range list {
		// An operator adds, removes or moves; groups and strengths are BoringSSL's to judge.
		bare := strings.TrimLeft(each, "-+!@")
		if bare == each && !slices.Contains(cipherSuites, bare) && !strings.HasPrefix(each, "[") && each != "ALL" && each != "HIGH" {
			c.warn(badCipher, at.index(i), "ignoring invalid cipher suite %s", quote(each))
		}
		if seen[each] {
			c.warn(badCipher, at.index(i), "ignoring duplicate cipher suite %s", quote(each))
		}
		seen[each] = true
	}
}
