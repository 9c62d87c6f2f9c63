package config

import "strings"

// Protocol is how the traffic of a port is treated.
type Protocol int

// Protocols, by what they mean for listeners.
const (
	// Sniffed: nothing was declared, the proxy looks at the first bytes.
	Sniffed Protocol = iota
	HTTP
	HTTP2
	GRPC
	GRPCWeb
	TCP
	TLS
	HTTPS
	Mongo
	MySQL
	UDP
)

// ParseProtocol reads a port's declared protocol. Redis is plain TCP, as Istio's defaults have it;
// words that it doesn't know are to be sniffed.
func ParseProtocol(s string) Protocol {
	switch strings.ToUpper(s) {
	case "HTTP", "HTTP_PROXY":
		return HTTP
	case "HTTP2":
		return HTTP2
	case "GRPC":
		return GRPC
	case "GRPC-WEB", "GRPC_WEB":
		return GRPCWeb
	case "TCP", "REDIS", "HBONE", "DOUBLE_HBONE":
		return TCP
	case "TLS":
		return TLS
	case "HTTPS":
		return HTTPS
	case "MONGO":
		return Mongo
	case "MYSQL":
		return MySQL
	case "UDP":
		return UDP
	}
	return Sniffed
}

// IsHTTP reports whether requests can be read.
func (p Protocol) IsHTTP() bool { return p == HTTP || p.IsHTTP2() }

// IsHTTP2 reports whether requests are HTTP/2 by declaration.
func (p Protocol) IsHTTP2() bool { return p == HTTP2 || p == GRPC || p == GRPCWeb }

// IsTLS reports whether the application itself speaks TLS.
func (p Protocol) IsTLS() bool { return p == TLS || p == HTTPS }

// Opened is the protocol within TLS that the proxy opens.
func (p Protocol) Opened() Protocol {
	switch p {
	case HTTPS:
		return HTTP
	case TLS:
		return TCP
	}
	return p
}

// IsTCP reports whether bytes are passed on unread.
func (p Protocol) IsTCP() bool { return p == TCP || p == Mongo || p == MySQL || p.IsTLS() }
