package mux

import (
	"net/http"
	"time"
)

// What a connection of HTTP/2 may cost that is for pages.
const (
	requestsAtOnce = 16
	frameBytes     = 16 << 10
	bodyBytes      = 64 << 10
	silence        = 30 * time.Second
)

// Serve makes a server of pages ready for its part of a shared port: it takes HTTP/2 in plain text
// (RFC 9113, section 3.3), and refuses gRPC.
func Serve(s *http.Server) {
	s.Protocols = &http.Protocols{}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	s.HTTP2 = &http.HTTP2Config{
		MaxConcurrentStreams: requestsAtOnce, MaxReadFrameSize: frameBytes,
		MaxReceiveBufferPerConnection: bodyBytes, MaxReceiveBufferPerStream: bodyBytes,
		SendPingTimeout: silence, WriteByteTimeout: silence,
	}
	s.Handler = refusing(s.Handler)
}

// refusing answers gRPC on a connection for pages with Unavailable, and ends the connection:
// clients try that again on another one.
func refusing(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 || !ofGRPC(r.Header.Get("Content-Type")) {
			h.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Connection", "close")
		w.Header().Set("Grpc-Status", "14") // UNAVAILABLE
		w.Header().Set("Grpc-Message", "this connection began with a page: try again on another one")
	})
}
