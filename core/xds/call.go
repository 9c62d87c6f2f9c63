package xds

import (
	"log/slog"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/coxswain-mesh/coxswain/core/budget"
)

// payload is the encoded message of a call that the server itself doesn't know.
type payload struct{ bytes []byte }

// call has a unary call answered whose service is not the server's own.
func (e *endpoint) call(_ any, g grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(g)
	request, err := e.request(g)
	if err != nil {
		return err
	}
	response, err := e.server.config.Calls(g.Context(), method, request)
	if err != nil {
		if code := status.Code(err); code == codes.Unauthenticated || code == codes.PermissionDenied {
			e.server.lines.log(e.server.config.Log, slog.LevelInfo, "call refused", "method", budget.Line(method, maxLogged), "remote", remoteOf(g.Context()),
				"code", code.String(), "reason", budget.Line(status.Convert(err).Message(), maxLogged))
		}
		return err
	}
	return g.SendMsg(&payload{response})
}

// request waits for the call's request, for as long as a stream may be without one.
func (e *endpoint) request(g grpc.ServerStream) ([]byte, error) {
	var late <-chan time.Time
	if idle := e.server.config.Limits.Stream.Idle; idle > 0 {
		timer := time.NewTimer(idle)
		defer timer.Stop()
		late = timer.C
	}
	var request payload
	came := make(chan error, 1)
	e.wg.Go(func() { came <- g.RecvMsg(&request) })
	select {
	case err := <-came:
		return request.bytes, err
	case <-late:
		return nil, status.Error(codes.DeadlineExceeded, "the call's request did not come")
	}
}
