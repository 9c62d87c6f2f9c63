package mesh

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/server"
	"github.com/coxswain-mesh/coxswain/plugins/shared/bundle"
	"google.golang.org/protobuf/proto"
	security "istio.io/api/security/v1alpha1"
)

// Issuer is how plugins make the secure port's certificate: by the service that signs for
// workloads, istio.v1.auth.IstioCertificateService.
func Issuer(names []string) *server.Issuer {
	return &server.Issuer{
		Method: security.IstioCertificateService_CreateCertificate_FullMethodName,
		Names:  names,
		Request: func(csr []byte) ([]byte, error) {
			text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr})
			return proto.Marshal(&security.IstioCertificateRequest{Csr: string(text)})
		},
		Chain: chain,
		Table: bundle.Table,
		Authorities: func(payload []byte) (server.Authorities, error) {
			b, err := bundle.Parse(payload)
			if err != nil {
				return server.Authorities{}, err
			}
			ders, err := b.DER()
			return server.Authorities{Domain: b.TrustDomain, Local: b.Local, Certificates: ders}, err
		},
		DomainOf: domainOf,
		Stopped: func(fault []byte) string {
			var f struct{ Kind, Message string }
			if json.Unmarshal(fault, &f) != nil || f.Kind != bundle.Stopped {
				return ""
			}
			return f.Message
		},
		Revocations: func(payload []byte) ([][]byte, error) {
			b, err := bundle.Parse(payload)
			if err != nil {
				return nil, err
			}
			return b.Revocations()
		},
	}
}

// chain reads a response, whose last certificates are roots.
func chain(response []byte) ([][]byte, error) {
	m := &security.IstioCertificateResponse{}
	if err := proto.Unmarshal(response, m); err != nil {
		return nil, err
	}
	all, err := bundle.DER(m.CertChain)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(der []byte) bool {
		c, err := x509.ParseCertificate(der)
		return err == nil && c.IsCA && bytes.Equal(c.RawIssuer, c.RawSubject)
	}), nil
}

// ServerNames are the names by which proxies know the control plane, as istiod has them: those of
// its services in its namespace, of its revision, others that it is told, and localhost where it
// listens on the loopback interface alone.
func ServerNames(namespace, revision, address string, others []string) []string {
	names := slices.Clone(others)
	services := []string{"istiod", "istiod-remote", "istio-pilot"}
	if revision != "" && revision != "default" {
		services = append(services, "istiod-"+revision)
	}
	for _, s := range services {
		names = append(names, s+"."+namespace+".svc")
	}
	if host, _, err := net.SplitHostPort(address); err == nil {
		if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
			names = append(names, "localhost")
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
