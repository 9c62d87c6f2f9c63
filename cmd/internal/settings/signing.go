package settings

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// Who makes the secure port's own certificate: the set's controller/ca, a signer of the cluster,
// files, or nobody.
const (
	ProviderIstiod, providerCustom, providerNone = "istiod", "custom", "none"
	// providerSigner is followed by a signer's name.
	providerSigner = "k8s.io/"
)

// ExternalKubernetes is ExternalCA where signers of the cluster sign.
const ExternalKubernetes = "ISTIOD_RA_KUBERNETES_API"

// WellKnown is where the files of the secure port are mounted in pods of istiod's.
const WellKnown = "var/run/secrets/istiod"

// PortSigner is the cluster's signer that makes the secure port's certificate; empty: none does.
func (s Signing) PortSigner() string {
	name, found := strings.CutPrefix(s.Provider, providerSigner)
	if !found {
		return ""
	}
	return name
}

// MakesPort reports whether a plugin makes the secure port's certificate where no files are named.
func (s Signing) MakesPort() bool { return s.Provider != providerNone && s.Provider != providerCustom }

func (s Signing) check() error {
	var errs []error
	switch s.Provider {
	case ProviderIstiod, providerCustom, providerNone:
	default:
		if signer := s.PortSigner(); strings.Count(signer, "/") != 1 {
			errs = append(errs, fmt.Errorf(
				"pilotCertProvider: %q is none of istiod, custom, none, and k8s.io/SIGNER with a signer such as issuers.example.com/mesh",
				s.Provider,
			))
		}
	}
	switch {
	case s.ExternalCA != "" && s.ExternalCA != ExternalKubernetes:
		errs = append(errs, fmt.Errorf("externalCA: %q is not %s; other servers that sign are named in plugins.yaml (controller/ca, external)",
			s.ExternalCA, ExternalKubernetes))
	case s.ExternalCA != "" && s.K8sSigner+s.SignerDomain == "":
		errs = append(errs, errors.New("externalCA: which signer? set k8sSigner, such as issuers.example.com/mesh, or certSignerDomain"))
	}
	return errors.Join(errs...)
}

// SecureAddress is SecureGRPCAddr; empty where neither files nor a plugin have a certificate for
// it.
func (s Settings) SecureAddress() string {
	if files := s.Mounted(); files.CertFile == "" && !s.Callers.Signing.MakesPort() {
		return ""
	}
	return s.SecureGRPCAddr
}

// Mounted returns the secure port's files: with the provider custom, where none are named, those
// that are mounted in pods of istiod's.
func (s Settings) Mounted() TLS {
	t := s.TLS
	if s.Callers.Signing.Provider == providerCustom && t.CACertFile+t.CertFile+t.KeyFile == "" {
		t.CertFile, t.KeyFile, t.CACertFile = filepath.Join(WellKnown, "tls", "tls.crt"),
			filepath.Join(WellKnown, "tls", "tls.key"), filepath.Join(WellKnown, "ca", "root-cert.pem")
	}
	return t
}

// Replaced are the SHA-256 of roots of others that are overwritten.
func (s Signing) Replaced() []string { return list(s.ReplaceRoot) }
