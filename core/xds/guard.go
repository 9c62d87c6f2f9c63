package xds

import (
	"context"
	"log/slog"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// guarded is a stream whose requests are taken no faster than they may come.
type guarded struct {
	grpc.ServerStream
	server *Server
	lease  *budget.Lease
}

// leaseOf returns a stream's part in the account of peers.
func leaseOf(g grpc.ServerStream) *budget.Lease { return g.(*guarded).lease }

// guardStream lets a stream of any service begin, or refuses it.
func (s *Server) guardStream(srv any, g grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	lease, err := s.begin(g.Context())
	if err != nil {
		return err
	}
	defer lease.End()
	return handle(srv, &guarded{g, s, lease})
}

// guardCall does so with a call: of the health service.
func (s *Server) guardCall(ctx context.Context, r any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	lease, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer lease.End()
	return handle(ctx, r)
}

// begin waits until a stream may begin.
func (s *Server) begin(ctx context.Context) (*budget.Lease, error) {
	remote := remoteOf(ctx)
	if p, ok := peer.FromContext(ctx); ok {
		s.conns.spoke(p.LocalAddr, p.Addr)
	}
	lease, err := s.admit(ctx, remote)
	if err != nil {
		code := status.Code(err)
		if code == codes.Canceled {
			return nil, err // it hung up while it waited
		}
		s.metrics.refused.WithLabelValues(code.String()).Inc()
		s.metrics.limited(err)
		s.lines.log(s.config.Log, slog.LevelInfo, "stream refused", "remote", remote, "code", code.String(), "reason", err)
	}
	return lease, err
}

func (s *Server) admit(ctx context.Context, remote string) (*budget.Lease, error) {
	headers, _ := metadata.FromIncomingContext(ctx)
	if err := s.config.Limits.Stream.CheckHeaders(headerBytes(headers)); err != nil {
		return nil, err
	}
	if err := s.short(); err != nil {
		return nil, err
	}
	lease, wait, err := s.peers.Begin(budget.Address(remote), time.Now())
	if err != nil {
		return nil, err
	}
	if !sleep(ctx, wait) {
		lease.End()
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	return lease, nil
}

// RecvMsg implements grpc.ServerStream. While requests come too fast none is read: the client has
// to wait, and what it sends stays with it.
func (g *guarded) RecvMsg(m any) error {
	if err := g.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	wait, limit := g.lease.Request(time.Now())
	if wait > 0 {
		g.server.metrics.limits.WithLabelValues(limit).Inc()
	}
	if !sleep(g.Context(), wait) {
		return status.FromContextError(g.Context().Err()).Err()
	}
	return nil
}

// sleep waits for a time. It reports false if ctx ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// headerBytes counts as HTTP/2 does: 32 bytes for each header besides its text.
func headerBytes(headers metadata.MD) (n int) {
	for name, values := range headers {
		for _, v := range values {
			n += len(name) + len(v) + 32
		}
	}
	return n
}

// remoteOf returns the address of a stream's client.
func remoteOf(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		return p.Addr.String()
	}
	return ""
}

// secured reports whether a stream's connection is TLS.
func secured(ctx context.Context) bool {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return false
	}
	_, ok = p.AuthInfo.(credentials.TLSInfo)
	return ok
}
