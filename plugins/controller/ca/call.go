package ca

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	security "istio.io/api/security/v1alpha1"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/coxswain-mesh/coxswain/plugins/controller/ca/authority"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// impersonated is the key of a request's metadata by which somebody asks for another's certificate.
const impersonated = "ImpersonatedIdentity"

// certSigner is the key by which a workload names who is to sign, within the domain of signers.
const certSigner = "CertSigner"

// maxCall is how many bytes a call may have: the request that is to be signed, and what surrounds
// it.
const maxCall = 4 * authority.MaxRequest

// Reads implements sdk.Reader: agents of nodes may ask for what runs on their node.
func (c *Controller) Reads() []string {
	if len(c.nodes.trusted) > 0 {
		return []string{state.Workloads}
	}
	return nil
}

// Methods implements sdk.CallHandler.
func (c *Controller) Methods() []string {
	return []string{security.IstioCertificateService_CreateCertificate_FullMethodName}
}

// Call implements sdk.CallHandler: it signs a certificate for who calls. Names in the request count
// for nothing, but where the core itself calls.
// Source: istio.io/api/security/v1alpha1, IstioCertificateService.
func (c *Controller) Call(ctx context.Context, call sdk.Call) (response []byte, err error) {
	response, err = c.sign(ctx, call)
	c.counts.Add("certificate_requests_total", "outcome", outcome(err))
	return response, err
}

// outcome is the word by which a request for a certificate is counted.
func outcome(err error) string {
	var refused *sdk.CallError
	switch {
	case err == nil:
		return "issued"
	case !errors.As(err, &refused):
		return "unsigned"
	}
	switch codes.Code(refused.Code) {
	case codes.InvalidArgument:
		return "unreadable"
	case codes.PermissionDenied, codes.Unauthenticated:
		return "unauthenticated"
	}
	return "unsigned"
}

// sign is Call.
func (c *Controller) sign(ctx context.Context, call sdk.Call) (response []byte, err error) {
	m := &security.IstioCertificateRequest{}
	if len(call.Request) > maxCall {
		return nil, refuse(codes.InvalidArgument, "the request has %d bytes; %d are taken", len(call.Request), maxCall)
	}
	if err := proto.Unmarshal(call.Request, m); err != nil {
		return nil, refuse(codes.InvalidArgument, "the request can't be read: %v", err)
	}
	select {
	case <-c.first:
	case <-ctx.Done():
		if why := c.reported.why(); why != "" {
			return nil, refuse(codes.Unavailable, "the CA is stopped: %s", why)
		}
		return nil, refuse(codes.Unavailable, "the CA isn't ready yet; the control plane's log says why")
	}
	by := c.signs.Load()
	if call.Identities, err = c.inTheNameOf(call, m, by.domains); err != nil {
		return nil, err
	}
	a, err := by.ask(call, m)
	if err != nil {
		return nil, err
	}
	if a.TTL, err = c.ttl(m.ValidityDuration); err != nil {
		return nil, err
	}
	chain, roots, err := by.of(call).certify(ctx, *a)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(&security.IstioCertificateResponse{CertChain: append(chain, strings.Join(roots, ""))})
}

// ask is what is to be signed for a caller.
func (s *signer) ask(call sdk.Call, m *security.IstioCertificateRequest) (*ask, error) {
	r, err := authority.ParseRequest([]byte(m.Csr))
	if err != nil {
		return nil, refuse(codes.InvalidArgument, "csr: %v", err)
	}
	a := &ask{Request: authority.Request{Key: r.PublicKey}, csr: r, signer: m.Metadata.GetFields()[certSigner].GetStringValue()}
	if call.Core {
		a.DNS = r.DNSNames
		return a, nil
	}
	for _, text := range call.Identities {
		i, ok := istio.ParseIdentity(text)
		if !ok || !slices.Contains(s.domains, i.TrustDomain) {
			continue
		}
		u, err := url.Parse(text)
		if err != nil {
			continue
		}
		a.URIs = append(a.URIs, u)
	}
	if len(a.URIs) == 0 {
		return nil,
			refuse(codes.PermissionDenied, "certificates are signed for workloads of the trust domains %q, and the caller is %q", s.domains, call.Identities)
	}
	return a, nil
}

// inTheNameOf returns the identities that a certificate is asked for: the caller's, or the one that
// a registration authority or an agent of a node names.
func (c *Controller) inTheNameOf(call sdk.Call, m *security.IstioCertificateRequest, domains []string) ([]string, error) {
	name := m.Metadata.GetFields()[impersonated].GetStringValue()
	if name == "" {
		return call.Identities, nil
	}
	authority := slices.ContainsFunc(call.Identities, func(id string) bool { return slices.Contains(c.config.External.RegistrationAuthorities, id) })
	agent := c.nodes.agent(call, domains)
	if !authority && agent == "" {
		return nil, refuse(codes.PermissionDenied,
			"the caller, %q, may not ask for the certificate of somebody else (%s): neither external.registrationAuthorities nor external.agents has it",
			call.Identities, impersonated)
	}
	wanted, ok := istio.ParseIdentity(name)
	if !ok || !slices.Contains(domains, wanted.TrustDomain) {
		return nil, refuse(codes.PermissionDenied,
			"%s: %q is no workload of the trust domains %q (spiffe://DOMAIN/ns/NAMESPACE/sa/SERVICE-ACCOUNT)",
			impersonated, name, domains)
	}
	if !authority {
		if err := c.nodes.stands(call, agent, wanted.Namespace+"/"+wanted.ServiceAccount); err != nil {
			return nil, err
		}
	}
	return []string{name}, nil
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

func refuse(code codes.Code, format string, args ...any) error {
	return &sdk.CallError{Code: uint32(code), Message: fmt.Sprintf(format, args...)}
}
