package hosts

import "strings"

// Protocol returns a protocol's name as pb.Port has it: in capitals, and empty (to be sniffed) for
// what is unknown. Source: Istio API, ServicePort.protocol.
func Protocol(name string) string {
	switch upper := strings.ToUpper(name); upper {
	case "HTTP", "HTTPS", "HTTP2", "GRPC", "GRPC-WEB", "HTTP_PROXY", "TCP", "TLS", "MONGO", "REDIS", "MYSQL", "UDP":
		return upper
	default:
		return ""
	}
}
