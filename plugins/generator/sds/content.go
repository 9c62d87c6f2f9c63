package sds

import (
	"bytes"
	"errors"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
)

// resource makes what a reference means, of an object's values.
func resource(r secrets.Reference, name string, data map[string][]byte) ([]byte, error) {
	switch {
	case len(data) == 0:
		return nil, errEmpty
	case r.Roots:
		return trust(name, data)
	}
	return certificate(name, data)
}

// errEmpty is what is wrong with an object that has nothing to serve.
var errEmpty = errors.New("it has no certificates and keys")

func certificate(name string, data map[string][]byte) ([]byte, error) {
	p, err := secrets.Certificate(data)
	if err != nil {
		return nil, err
	}
	out := &tlsv3.TlsCertificate{CertificateChain: inline(p.Chain), PrivateKey: inline(p.Key)}
	if len(p.Staple) > 0 {
		out.OcspStaple = inline(p.Staple)
	}
	return encode(&tlsv3.Secret{Name: name, Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: out}})
}

func trust(name string, data map[string][]byte) ([]byte, error) {
	t, err := secrets.Trusted(data)
	if err != nil {
		return nil, err
	}
	out := &tlsv3.CertificateValidationContext{TrustedCa: inline(t.Roots)}
	if len(t.Revoked) > 0 {
		out.Crl = inline(t.Revoked)
	}
	return encode(&tlsv3.Secret{Name: name, Type: &tlsv3.Secret_ValidationContext{ValidationContext: out}})
}

func encode(s *tlsv3.Secret) ([]byte, error) {
	return proto.MarshalOptions{Deterministic: true}.Marshal(s)
}

func inline(b []byte) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: b}}
}

// same reports whether two bodies are equal.
func same(a, b []byte) bool { return bytes.Equal(a, b) && (a == nil) == (b == nil) }
