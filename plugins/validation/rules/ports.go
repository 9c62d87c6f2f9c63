package rules

import (
	"slices"
	"strings"
)

// Codes about ports.
const (
	badPort     = "COX2009"
	badPortName = "COX2010"
	badProtocol = "COX2011"
	samePort    = "COX2012"
)

const maxPort = 65535

// protocols that a port can have, in capitals. Source: Istio API, Port.protocol and
// ServicePort.protocol.
var protocols = []string{
	"DOUBLE-HBONE", "GRPC", "GRPC-WEB", "HBONE", "HTTP", "HTTP2", "HTTPS", "HTTP_PROXY", "MONGO", "MYSQL", "REDIS", "TCP", "TLS", "UDP",
}

// protocol checks a protocol's name, and returns it in capitals.
func (c *checker) protocol(at path, name string) string {
	upper := strings.ToUpper(name)
	if !slices.Contains(protocols, upper) {
		c.fail(badProtocol, at, "invalid protocol %s", quote(name)).hint("write one of %s", strings.Join(protocols, ", "))
	}
	return upper
}

func speaksHTTP(protocol string) bool {
	return slices.Contains([]string{"HTTP", "HTTP2", "HTTP_PROXY", "GRPC", "GRPC-WEB"}, protocol)
}

func speaksTLS(protocol string) bool { return protocol == "HTTPS" || protocol == "TLS" }

// port checks a port's number.
func (c *checker) port(at path, number uint32) {
	if number < 1 || number > maxPort {
		c.fail(badPort, at, "port number %d must be in the range 1..65535", number)
	}
}

// portName checks the name of a service's port, a DNS label.
func (c *checker) portName(at path, name string) {
	if !isLabel(name) {
		c.fail(badPortName, at, "invalid port name: %s", quote(name)).hint("use letters, digits and '-', at most 63, such as http-web")
	}
}
