package ca

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	security "istio.io/api/security/v1alpha1"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/coxswain-mesh/coxswain/plugins/controller/ca/authority"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secure/renewed"
)

// server has another server of istio.v1.auth.IstioCertificateService sign, for the callers that are
// known here: it asks for certificates of others, which it must be allowed there.
type server struct {
	config External
	conn   *grpc.ClientConn
	slots  slots
}

// silence is how long a connection may give no sign of life.
const silence = 10 * time.Second

// newServer asks nothing yet.
func newServer(c External) (*server, error) {
	conn, err := grpc.NewClient("dns:///"+c.Address, grpc.WithTransportCredentials(renewed.Credentials(c.TLS)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 3 * silence, Timeout: silence}), grpc.WithDisableServiceConfig(), grpc.WithNoProxy())
	if err != nil {
		return nil, fmt.Errorf("external.address: %w", err)
	}
	return &server{config: c, conn: conn, slots: make(slots, atOnce)}, nil
}

// certifier returns the server with its roots. The error is that there are none.
func (s *server) certifier() (certifier, error) {
	roots, err := readRoots(s.config.Roots)
	if err == nil && len(roots) == 0 {
		err = errors.New("no root is known of the server that signs, " + s.config.Address + ": put it into the file of external.roots, " + s.config.Roots)
	}
	return &serverSigner{server: s, roots: roots}, err
}

// serverSigner is another server that signs.
type serverSigner struct {
	*server
	roots []string
}

func (s *serverSigner) bundle() []string { return s.roots }

func (s *serverSigner) same(as certifier) bool {
	other, ok := as.(*serverSigner)
	return ok && s.server == other.server && slices.Equal(s.roots, other.roots)
}

func (s *serverSigner) String() string { return "the server " + s.config.Address }

func (s *serverSigner) certify(ctx context.Context, a ask) (chain, roots []string, err error) {
	if len(a.URIs) == 0 {
		return nil, nil, refuse(codes.FailedPrecondition, "%s signs for workloads alone: name files for the secure port "+
			"(tlsCertFile, tlsKeyFile, caCertFile), or a signer of the cluster (external.portSigner)", s)
	}
	if err := authority.Modest(a.csr, a.URIs, nil); err != nil {
		return nil, nil, refuse(codes.InvalidArgument, "csr: %v", err)
	}
	if len(a.csr.URIs) != 1 {
		return nil, nil, refuse(codes.InvalidArgument, "csr: it asks for %d names, and %s signs for one", len(a.csr.URIs), s)
	}
	ctx, cancel := s.config.bounded(ctx)
	defer cancel()
	free, err := s.slots.acquire(ctx, s.String())
	if err != nil {
		return nil, nil, err
	}
	defer free()
	answer, err := s.call(ctx, a)
	if err != nil {
		return nil, nil, err
	}
	chain, err = fit(s.String(), strings.Join(answer.CertChain, "\n"), a, s.roots)
	return chain, s.roots, err
}

// call asks the server in the caller's name.
func (s *serverSigner) call(ctx context.Context, a ask) (*security.IstioCertificateResponse, error) {
	fields := map[string]*structpb.Value{impersonated: structpb.NewStringValue(a.csr.URIs[0].String())}
	if a.signer != "" {
		fields[certSigner] = structpb.NewStringValue(a.signer)
	}
	if s.config.Token != "" {
		token, err := os.ReadFile(s.config.Token)
		if err != nil {
			return nil, refuse(codes.Unavailable, "the token that is to be shown to %s can't be read (external.tokenFile)", s)
		}
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	if s.config.Cluster != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "clusterid", s.config.Cluster)
	}
	answer, err := security.NewIstioCertificateServiceClient(s.conn).CreateCertificate(ctx, &security.IstioCertificateRequest{
		Csr: string(csrText(a)), ValidityDuration: int64(a.TTL / time.Second), Metadata: &structpb.Struct{Fields: fields},
	})
	if err == nil {
		return answer, nil
	}
	switch said := status.Convert(err); said.Code() {
	case codes.InvalidArgument, codes.ResourceExhausted:
		return nil, refuse(said.Code(), "%s refuses: %s", s, said.Message())
	case codes.Unauthenticated, codes.PermissionDenied:
		return nil,
			refuse(codes.FailedPrecondition, "%s refuses this control plane: it must know it (external.tls, external.tokenFile), and let it ask for others "+
				"(external.registrationAuthorities of its controller/ca; an istiod by CA_TRUSTED_NODE_ACCOUNTS, for who "+
				"runs on the same node): %s", s, said.Message())
	case codes.DeadlineExceeded:
		return nil,
			refuse(codes.Unavailable, "%s did not answer in time (external.timeout is %s); look whether it can be reached, and try again", s, s.config.Timeout)
	default:
		return nil,
			refuse(codes.Unavailable, "%s did not sign; look whether it can be reached (external.address, external.tls), and try again: %s", s, said.Message())
	}
}
