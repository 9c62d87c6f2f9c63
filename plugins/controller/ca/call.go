package ca

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	security "istio.io/api/security/v1alpha1"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/coxswain-mesh/coxswain/plugins/controller/ca/authority"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// impersonated is the key of a request's metadata by which a node's agent asks for another's
// certificate.
const impersonated = "ImpersonatedIdentity"

// Methods implements sdk.CallHandler.
func (c *Controller) Methods() []string {
	return []string{security.IstioCertificateService_CreateCertificate_FullMethodName}
}

// Call implements sdk.CallHandler: it signs a certificate for who calls. Names in the request count
// for nothing, but where the core itself calls.
// Source: istio.io/api/security/v1alpha1, IstioCertificateService.
func (c *Controller) Call(ctx context.Context, call sdk.Call) ([]byte, error) {
	m := &security.IstioCertificateRequest{}
	if err := proto.Unmarshal(call.Request, m); err != nil {
		return nil, refuse(codes.InvalidArgument, "the request can't be read: %v", err)
	}
	select {
	case <-c.first:
	case <-ctx.Done():
		return nil, refuse(codes.Unavailable, "the CA isn't ready yet; the control plane's log says why")
	}
	by := c.signs.Load()
	r, err := by.request(call, m)
	if err != nil {
		return nil, err
	}
	if r.TTL, err = c.ttl(m.ValidityDuration); err != nil {
		return nil, err
	}
	der, err := by.Sign(*r, time.Now())
	if err != nil {
		return nil, refuse(codes.Internal, "the certificate can't be signed: %v", err)
	}
	return proto.Marshal(&security.IstioCertificateResponse{CertChain: by.answer(der)})
}

// request is what is to be signed for a caller.
func (s *signer) request(call sdk.Call, m *security.IstioCertificateRequest) (*authority.Request, error) {
	if name := m.Metadata.GetFields()[impersonated].GetStringValue(); name != "" {
		return nil, refuse(codes.PermissionDenied, "nobody may ask for the certificate of somebody else (%s)", impersonated)
	}
	key, dns, err := authority.ParseRequest([]byte(m.Csr))
	if err != nil {
		return nil, refuse(codes.InvalidArgument, "csr: %v", err)
	}
	if call.Core {
		return &authority.Request{Key: key, DNS: dns}, nil
	}
	r := &authority.Request{Key: key}
	for _, text := range call.Identities {
		i, ok := istio.ParseIdentity(text)
		if !ok || !slices.Contains(s.domains, i.TrustDomain) {
			continue
		}
		u, err := url.Parse(text)
		if err != nil {
			continue
		}
		r.URIs = append(r.URIs, u)
	}
	if len(r.URIs) == 0 {
		return nil, refuse(codes.PermissionDenied, "certificates are signed for workloads of the trust domains %q, and the caller is %q", s.domains, call.Identities)
	}
	return r, nil
}

// ttl is how long a certificate counts that asks for so many seconds.
func (c *Controller) ttl(seconds int64) (time.Duration, error) {
	switch most := int64(c.config.MaxTTL / time.Second); {
	case seconds <= 0:
		return c.config.TTL, nil
	case seconds > most:
		return 0, refuse(codes.InvalidArgument, "validity_duration: %d s are asked for, and %s (%d s) is the most", seconds, c.config.MaxTTL, most)
	}
	return time.Duration(seconds) * time.Second, nil
}

// answer is the chain of a certificate: one text for each, the roots as the last.
func (s *signer) answer(der []byte) []string {
	all := []string{string(authority.EncodeCertificate(der))}
	for _, c := range s.Chain {
		all = append(all, string(authority.EncodeCertificate(c.Raw)))
	}
	roots := ""
	for _, text := range s.Bundle() {
		roots += text
	}
	return append(all, roots)
}

func refuse(code codes.Code, format string, args ...any) error {
	return &sdk.CallError{Code: uint32(code), Message: fmt.Sprintf(format, args...)}
}
