package bootstrap

import (
	"errors"
	"net"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// TLS of the way to the control plane; all names are files in PEM. Without CA it is plain text.
type TLS struct {
	// CA has the authorities of the control plane's certificate, Name is the DNS name that this
	// must have; empty: the host of Config.XDS.
	CA, Name string
	// Cert and Key are the proxy's own, both or neither.
	Cert, Key string
}

func (t TLS) check() error {
	switch {
	case t.CA == "" && t != TLS{}:
		return errors.New("xdsCA: TLS needs the file with the authorities of the control plane's certificate")
	case (t.Cert == "") != (t.Key == ""):
		return errors.New("xdsCert and xdsKey: a certificate and its key go together")
	}
	return nil
}

// socket returns the transport socket towards the control plane; nil: none.
func (c Config) socket() (*corev3.TransportSocket, error) {
	t := c.TLS
	if t.CA == "" {
		return nil, nil
	}
	name := t.Name
	if host, _, err := net.SplitHostPort(c.XDS); name == "" && err == nil {
		name = host
	}
	kind := tlsv3.SubjectAltNameMatcher_DNS
	if net.ParseIP(name) != nil {
		kind = tlsv3.SubjectAltNameMatcher_IP_ADDRESS
	}
	upstream := &tlsv3.UpstreamTlsContext{CommonTlsContext: &tlsv3.CommonTlsContext{
		AlpnProtocols: []string{"h2"},
		// Envoy as a client stops at 1.2 unless it is told otherwise.
		TlsParams: &tlsv3.TlsParameters{TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_2, TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3},
		ValidationContextType: &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{
			TrustedCa: file(t.CA),
			MatchTypedSubjectAltNames: []*tlsv3.SubjectAltNameMatcher{{
				SanType: kind, Matcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: name}},
			}},
		}},
	}}
	if kind == tlsv3.SubjectAltNameMatcher_DNS {
		upstream.Sni = name
	}
	if t.Cert != "" {
		upstream.CommonTlsContext.TlsCertificates = []*tlsv3.TlsCertificate{{CertificateChain: file(t.Cert), PrivateKey: file(t.Key)}}
	}
	config, err := anypb.New(upstream)
	if err != nil {
		return nil, err
	}
	return &corev3.TransportSocket{
		Name:       "envoy.transport_sockets.tls",
		ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: config},
	}, nil
}

func file(name string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: name}}
}
