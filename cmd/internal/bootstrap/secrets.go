package bootstrap

import (
	"errors"
	"os"
	"path/filepath"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// Names of files with certificates, as Istio's agent has them (OUTPUT_CERTS).
const (
	chainFile = "cert-chain.pem"
	keyFile   = "key.pem"
	rootsFile = "root-cert.pem"
)

// Names of a workload's secrets, as Istio's agent serves them.
const (
	workloadCertificate = "default"
	workloadRoots       = "ROOTCA"
)

// inBootstrap is what the metadata COXSWAIN_SECRETS says of secrets that are static resources;
// otherwise it names their folder.
const inBootstrap = "bootstrap"

// Certificates of the workload. Both empty: it has none.
type Certificates struct {
	// Files is a folder with cert-chain.pem, key.pem and root-cert.pem.
	Files string
	// SDS is a folder for default.json and ROOTCA.json, responses of the secret discovery service
	// that name the files (see WriteSecrets). The proxy reads them again when something is moved
	// into Files; without it, it reads the files once.
	SDS string
}

func (c Certificates) check() error {
	if c.SDS != "" && c.Files == "" {
		return errors.New("sds: it needs to know where the certificates are")
	}
	return nil
}

// source is the value of COXSWAIN_SECRETS.
func (c Certificates) source() string {
	if c.SDS != "" {
		return c.SDS
	}
	return inBootstrap
}

// secrets name the files.
func (c Certificates) secrets(watched *corev3.WatchedDirectory) []*tlsv3.Secret {
	in := func(name string) *corev3.DataSource { return file(filepath.Join(c.Files, name)) }
	return []*tlsv3.Secret{
		{Name: workloadCertificate, Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
			CertificateChain: in(chainFile), PrivateKey: in(keyFile), WatchedDirectory: watched,
		}}},
		{Name: workloadRoots, Type: &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{
			TrustedCa: in(rootsFile), WatchedDirectory: watched,
		}}},
	}
}

// static adds the secrets to the bootstrap, if they belong there.
func (c Certificates) static(b *bootstrapv3.Bootstrap) {
	if c.Files != "" && c.SDS == "" {
		b.StaticResources.Secrets = c.secrets(nil)
	}
}

// WriteSecrets writes the files of c.SDS.
func WriteSecrets(c Certificates) error {
	for _, s := range c.secrets(&corev3.WatchedDirectory{Path: c.Files}) {
		packed, err := anypb.New(s)
		if err != nil {
			return err
		}
		text, err := indent(&discoveryv3.DiscoveryResponse{VersionInfo: "1", Resources: []*anypb.Any{packed}})
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(c.SDS, s.Name+".json"), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
