package simulator

import (
	"net/http"
	"net/netip"
	"time"
)

// Connection is one that a client opens.
type Connection struct {
	// Source and Destination are as the client has them.
	Source, Destination netip.AddrPort
	// Intercepted is the port that rules of the system redirect the connection to, as Istio's do to
	// 15001 and 15006; 0: none do.
	Intercepted uint16
	// TLS is what the client says and shows; nil: plain text.
	TLS *TLS
	// Protocol is what the client speaks (within TLS, if there is any): "http/1.0", "http/1.1",
	// "h2", or anything else, "" too, for bytes.
	Protocol string
}

// TLS of a client.
type TLS struct {
	// SNI is the name of the server that it asks for, ALPN what it offers.
	SNI  string
	ALPN []string
	// Peer is whom its certificate names, one that is valid; nil: it shows none.
	Peer *Identity
}

// Identity is what a certificate names.
type Identity struct {
	URIs, DNS []string
	Subject   string
}

// Request is one that comes over the connection.
type Request struct {
	// Method is GET if it is empty, Path (with query) `/`.
	Method, Host, Path string
	Header             http.Header
	// At is when it comes, for tokens that expire; zero: tokens don't.
	At time.Time
}

// http reports whether the client speaks HTTP.
func (c Connection) http() bool {
	switch c.Protocol {
	case "http/1.0", "http/1.1", "h2", "h2c":
		return true
	}
	return false
}

// accepted is the port where the connection comes in.
func (c Connection) accepted() uint16 {
	if c.Intercepted != 0 {
		return c.Intercepted
	}
	return c.Destination.Port()
}
