package server

import (
	"context"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/caller"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// identify finds out who is at the other end of a stream.
type identify struct {
	control authentication
	naming  caller.Naming
	// plaintext: also of connections without TLS.
	plaintext bool
	// revocations are certificates that count no more; nil: nobody says so.
	revocations *revocations
}

// authentication is what is asked of core/control, which is made after identify: attach says which
// it is.
type authentication interface {
	plugins
	Authenticate(ctx context.Context, shown caller.Credentials) (caller.Known, error)
	WantedHeaders() []string
}

// attach has a control's plugins say who is calling, and rows of the issuer's which certificates
// count no more; by may be nil.
func (i *identify) attach(c authentication, by *Issuer) {
	i.control = c
	if by != nil && by.Revocations != nil {
		i.revocations = &revocations{rows: func() []*pb.Row { return c.Rows(by.Table) }, read: by.Revocations}
	}
}

// authenticates reports whether some plugin of the set can say who is calling.
func authenticates(set *manifest.Set) bool {
	for _, e := range set.Plugins {
		if e.Kind.Proto().Authenticates() && !e.Disabled {
			return true
		}
	}
	return false
}

// caller is an xds.Config's Identify. A connection in plain text is
// nobody's unless the setting says otherwise.
func (i *identify) caller(ctx context.Context, node *corev3.Node) ([]string, error) {
	shown, err := i.shown(ctx)
	if err != nil || shown == nil {
		return nil, err
	}
	return i.who(ctx, node, *shown)
}

// who returns those of the caller's identities that the node may have.
func (i *identify) who(ctx context.Context, node *corev3.Node, shown caller.Credentials) ([]string, error) {
	known, err := i.authenticate(ctx, shown)
	if err != nil {
		return nil, err
	}
	return i.naming.May(node, known.Identities)
}

// authenticate returns who the caller is, with those of its identities that count here.
func (i *identify) authenticate(ctx context.Context, shown caller.Credentials) (caller.Known, error) {
	known, err := i.control.Authenticate(ctx, shown)
	if err != nil && shown.Revoked != "" {
		return known, status.Errorf(status.Code(err), "%s; without it %s", shown.Revoked, status.Convert(err).Message())
	}
	if err != nil || i.naming.Trusted == nil {
		return known, err
	}
	known.Identities, err = i.naming.Trusted(known.Identities, i.control.Rows)
	return known, err
}

// call is an xds.Config's Calls: plugins answer them, of callers whom an authenticator knows.
func (i *identify) call(ctx context.Context, method string, request []byte) ([]byte, error) {
	if yes, _ := i.control.Offers(method); !yes {
		return nil, status.Errorf(codes.Unimplemented, "nobody offers %s here", budget.Line(method, maxMethod))
	}
	shown, err := i.shown(ctx)
	if err != nil {
		return nil, err
	}
	if shown == nil {
		return nil, status.Error(codes.Unauthenticated, "in plain text nobody knows who is calling: call the secure port (secureGRPCAddr)")
	}
	known, err := i.authenticate(ctx, *shown)
	if err != nil {
		return nil, err
	}
	return i.control.Call(ctx, &pb.Call{Method: method, Request: request, Identities: known.Identities, RemoteAddress: shown.RemoteAddress, Facts: known.Facts})
}

// maxMethod is how many bytes of a method's name an error may have.
const maxMethod = 200

// shown returns what a caller showed, nil where nobody asks for it.
func (i *identify) shown(ctx context.Context) (*caller.Credentials, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil, status.Error(codes.Internal, "the stream has no peer")
	}
	tls, secure := p.AuthInfo.(credentials.TLSInfo)
	if !secure && !i.plaintext {
		return nil, nil
	}
	all, _ := metadata.FromIncomingContext(ctx)
	headers, err := i.headers(all.Get)
	if err != nil {
		return nil, err
	}
	out := &caller.Credentials{Headers: headers, RemoteAddress: p.Addr.String()}
	out.Certificates, out.Revoked = i.verified(tls)
	return out, nil
}

// verified returns the peer's chain, leaf first, if TLS verified one and nothing of it is revoked.
func (i *identify) verified(tls credentials.TLSInfo) (chain [][]byte, revoked string) {
	if len(tls.State.VerifiedChains) == 0 {
		return nil, ""
	}
	good, revoked := i.revocations.check(tls.State.VerifiedChains)
	for _, c := range good {
		chain = append(chain, c.Raw)
	}
	return chain, revoked
}

// maxHeaders is how many bytes of headers travel to authenticators.
const maxHeaders = 64 << 10

// readerOf is reader; nil: no plugin of the set can say who is calling.
func (i *identify) readerOf(set *manifest.Set) func(context.Context, admin.Shown) ([]string, error) {
	if !authenticates(set) {
		return nil
	}
	return i.reader
}

// reader is an admin.Config's Caller: who asks for a debug page.
func (i *identify) reader(ctx context.Context, shown admin.Shown) ([]string, error) {
	headers, err := i.headers(shown.Headers.Values)
	if err != nil {
		return nil, err
	}
	out := caller.Credentials{Headers: headers, RemoteAddress: shown.RemoteAddress}
	if shown.TLS != nil {
		out.Certificates, out.Revoked = i.verified(credentials.TLSInfo{State: *shown.TLS})
	}
	return i.who(ctx, &corev3.Node{}, out)
}

// several is the header of which there may be several, which HTTP joins.
const several = "x-forwarded-client-cert"

// headers returns the headers that some authenticator gets.
func (i *identify) headers(all func(name string) []string) (map[string]string, error) {
	headers, size := map[string]string{}, 0
	for _, name := range i.control.WantedHeaders() {
		values := all(name)
		if len(values) == 0 {
			continue
		}
		if len(values) > 1 && name != several {
			return nil, status.Errorf(codes.Unauthenticated, "the header %s is given %d times; it must be given once", name, len(values))
		}
		headers[name] = strings.Join(values, ",")
		size += len(name) + len(headers[name])
	}
	if size > maxHeaders {
		return nil, status.Errorf(codes.Unauthenticated, "the credentials in headers have %d bytes; %d are taken", size, maxHeaders)
	}
	return headers, nil
}
