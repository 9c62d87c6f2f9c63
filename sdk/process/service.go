//go:build !wasip1

package process

import (
	"google.golang.org/grpc"

	"github.com/coxswain-mesh/coxswain/sdk/session"
)

const (
	serviceName = "coxswain.v1.Session"
	streamName  = "Talk"
	// maxFrame is what gRPC lets pass; the link refuses what is over session.MaxMessage with a
	// better message.
	maxFrame = session.MaxMessage + 64<<10
	// window is the HTTP/2 window of stream and connection: a message fits at once.
	window = 2 * session.MaxMessage
)

// service describes coxswain.v1.Session for the plugin's server.
func service() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: serviceName,
		HandlerType: (*sessionServer)(nil),
		Streams:     []grpc.StreamDesc{sessionStream()},
		Metadata:    "session.proto",
	}
}

func sessionStream() grpc.StreamDesc {
	return grpc.StreamDesc{
		StreamName:    streamName,
		Handler:       func(srv any, s grpc.ServerStream) error { return srv.(sessionServer).serveSession(s) },
		ServerStreams: true,
		ClientStreams: true,
	}
}

// sessionServer serves the stream.
type sessionServer interface {
	serveSession(s grpc.ServerStream) error
}
