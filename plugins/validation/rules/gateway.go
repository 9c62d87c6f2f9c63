//lint:file-ignore SA1019 deprecated fields are read to say so, and to check them all the same

package rules

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

const (
	emptyServer  = "COX2201"
	protocolTLS  = "COX2202"
	badRedirects = "COX2205"
)

// unixScheme begins a bind that is a Unix socket.
const unixScheme = "unix://"

func (c *checker) gateway(at path, g *networking.Gateway) {
	servers := at.field("servers")
	if len(g.Servers) == 0 {
		c.fail(emptyServer, servers, "gateway must have at least one server")
	}
	names := map[string]int{}
	for i, s := range g.Servers {
		here := servers.index(i)
		c.server(here, s)
		name := s.GetPort().GetName()
		if first, ok := names[name]; ok && name != "" {
			c.fail(samePort, here.field("port").field("name"), "port names in servers must be unique: duplicate name %s, as in servers[%d]", quote(name), first)
		} else {
			names[name] = i
		}
	}
}

func (c *checker) server(at path, s *networking.Server) {
	if len(s.GetHosts()) == 0 {
		c.fail(emptyServer, at.field("hosts"), `server config must contain at least one host`).hint(`write "*" for all`)
	}
	for i, host := range s.GetHosts() {
		c.scoped(at.field("hosts").index(i), host, true)
	}
	c.serverTLS(at.field("tls"), s.GetTls())
	if s.GetPort() == nil {
		c.fail(badPort, at.field("port"), "port is required")
		return
	}
	c.serverPort(at.field("port"), s.Port, s.Bind)
	c.serverBind(at.field("bind"), s.Bind)
	c.serverProtocol(at, s)
}

func (c *checker) serverPort(at path, p *networking.Port, bind string) {
	if p.Name == "" {
		c.fail(badPortName, at.field("name"), "port name must be set")
	}
	if c.protocol(at.field("protocol"), p.Protocol) == "UDP" {
		c.warn(badProtocol, at.field("protocol"), "UDP is not supported by gateways")
	}
	switch {
	case !strings.HasPrefix(bind, unixScheme):
		c.port(at.field("number"), p.Number)
	case p.Number != 0:
		c.fail(badPort, at.field("number"), "port number must be 0 for unix domain socket %s", quote(bind))
	}
	if p.GetTargetPort() != 0 {
		c.obsolete(at.field("targetPort"), "targetPort has no meaning for gateways; remove it")
	}
}

func (c *checker) serverBind(at path, bind string) {
	if file, ok := strings.CutPrefix(bind, unixScheme); ok {
		c.socket(at, file)
	} else if bind != "" && !isIP(bind) {
		c.fail(badAddress, at, "%s is not a valid IP", bind).hint("write an IP address or unix://PATH")
	}
}

// serverProtocol checks that protocol and TLS fit.
func (c *checker) serverProtocol(at path, s *networking.Server) {
	protocol := strings.ToUpper(s.Port.Protocol)
	tls := at.field("tls")
	switch {
	case speaksTLS(protocol) && s.Tls == nil:
		c.fail(protocolTLS, tls, "server must have TLS settings for HTTPS/TLS protocols").hint("add tls with a mode and certificates")
	case s.Tls == nil || speaksTLS(protocol):
	case !speaksHTTP(protocol):
		c.fail(protocolTLS, tls, "server cannot have TLS settings for non HTTPS/TLS ports").hint("make the protocol HTTPS or TLS")
	case !isPassthrough(s.Tls) || s.Tls.CaCertificates+s.Tls.PrivateKey+s.Tls.ServerCertificate != "":
		c.fail(protocolTLS, tls, "server cannot have TLS settings for plain text HTTP ports").hint(
			"make the protocol HTTPS; for HTTP there is httpsRedirect alone",
		)
	}
	if s.Tls.GetHttpsRedirect() && !speaksHTTP(protocol) {
		c.warn(badRedirects, tls.field("httpsRedirect"), "tls.httpsRedirect should only be used with http servers")
	}
}

func isPassthrough(t *networking.ServerTLSSettings) bool {
	return t.Mode == networking.ServerTLSSettings_PASSTHROUGH || t.Mode == networking.ServerTLSSettings_AUTO_PASSTHROUGH
}
