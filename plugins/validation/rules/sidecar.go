package rules

import (
	"net"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// Codes about Sidecars.
const (
	emptySidecar   = "COX2501"
	sameListener   = "COX2502"
	badCapture     = "COX2503"
	badDefault     = "COX2504"
	badSidecarTLS  = "COX2505"
	badEgressProxy = "COX2506"
	redundantHost  = "COX2507"
)

func (c *checker) sidecar(at path, s *networking.Sidecar) {
	c.workloads(at.field("workloadSelector"), s.WorkloadSelector != nil, s.WorkloadSelector.GetLabels())
	if len(s.Egress)+len(s.Ingress) == 0 && s.OutboundTrafficPolicy == nil && s.InboundConnectionPool == nil {
		c.fail(emptySidecar, at, "sidecar: empty configuration provided").hint("add egress, ingress, outboundTrafficPolicy or inboundConnectionPool")
	}
	c.ingress(at.field("ingress"), s.Ingress)
	c.egress(at.field("egress"), s.Egress)
	c.connectionPool(at.field("inboundConnectionPool"), s.InboundConnectionPool)
	c.egressProxy(at.field("outboundTrafficPolicy"), s.OutboundTrafficPolicy)
}

func (c *checker) egressProxy(at path, p *networking.OutboundTrafficPolicy) {
	if p.GetEgressProxy() == nil {
		return
	}
	here := at.field("egressProxy")
	if p.Mode != networking.OutboundTrafficPolicy_ALLOW_ANY {
		c.fail(badEgressProxy, here, "egress_proxy must be set only with ALLOW_ANY outbound_traffic_policy mode")
	}
	c.fqdn(here.field("host"), p.EgressProxy.Host)
	if p.EgressProxy.Port == nil {
		c.fail(badEgressProxy, here.field("port"), "egress proxy: a port is required")
		return
	}
	c.port(here.field("port").field("number"), p.EgressProxy.Port.Number)
}

func (c *checker) ingress(at path, list []*networking.IstioIngressListener) {
	seen := map[uint32]bool{}
	for i, l := range list {
		here := at.index(i)
		c.ingressListener(here, l)
		if l.GetPort() == nil {
			c.fail(badPort, here.field("port"), "port is required for ingress listeners")
			continue
		}
		if seen[l.Port.Number] {
			c.fail(sameListener, here.field("port"), "ports on ingress listeners must be unique: %d is used by another", l.Port.Number)
		}
		seen[l.Port.Number] = true
	}
}

func (c *checker) ingressListener(at path, l *networking.IstioIngressListener) {
	protocol := ""
	if p := l.GetPort(); p != nil {
		protocol = c.sidecarPort(at.field("port"), p)
		c.port(at.field("port").field("number"), p.Number)
	}
	if l.GetBind() != "" && !isIP(l.Bind) {
		c.fail(badAddress, at.field("bind"), "%s is not a valid IP", quote(l.Bind))
	}
	c.defaultEndpoint(at.field("defaultEndpoint"), l.GetDefaultEndpoint())
	if l.GetTls() != nil {
		c.sidecarTLS(at.field("tls"), l.Tls, protocol)
	}
	c.connectionPool(at.field("connectionPool"), l.GetConnectionPool())
	if protocol == "TCP" && l.GetConnectionPool().GetHttp() != nil {
		c.warn(badPool, at.field("connectionPool").field("http"), "HTTP connection pool settings have no effect on a TCP port")
	}
}

// sidecarPort checks a port's protocol, and returns it in capitals. An empty one is found out by
// looking at the traffic.
func (c *checker) sidecarPort(at path, p *networking.SidecarPort) string {
	if p.Protocol == "" {
		return ""
	}
	return c.protocol(at.field("protocol"), p.Protocol)
}

// localhosts are the addresses that requests can be handed to: the workload, or all of its
// addresses.
var localhosts = map[string]bool{"127.0.0.1": true, "::1": true, "0.0.0.0": true, "::": true}

func (c *checker) defaultEndpoint(at path, text string) {
	if text == "" {
		return
	}
	if file, unix := strings.CutPrefix(text, unixScheme); unix {
		c.socket(at, file)
		return
	}
	ip, port, err := net.SplitHostPort(text)
	if err != nil || !localhosts[ip] {
		c.fail(badDefault, at,
			"defaultEndpoint must be of form 127.0.0.1:<port>, 0.0.0.0:<port>, [::1]:port, [::]:port, unix://filepath, or unset; not %s",
			quote(text))
		return
	}
	if number, err := strconv.ParseUint(port, 10, 32); err != nil || number < 1 || number > maxPort {
		c.fail(badDefault, at, "defaultEndpoint port (%s) is not a number in the range 1..65535", quote(port))
	}
}

// sidecarTLS checks TLS that a sidecar terminates itself, with certificates in files.
func (c *checker) sidecarTLS(at path, t *networking.ServerTLSSettings, protocol string) {
	c.serverTLS(at, t)
	if protocol != "" && !speaksTLS(protocol) {
		c.fail(protocolTLS, at, "server cannot have TLS settings for non HTTPS/TLS ports").hint("make the protocol HTTPS or TLS")
	}
	for _, f := range []struct {
		field string
		given bool
	}{
		{"httpsRedirect", t.HttpsRedirect},
		{"subjectAltNames", len(t.SubjectAltNames) > 0},
		{"credentialName", t.CredentialName != ""},
		{"credentialNames", len(t.CredentialNames) > 0},
		{"tlsCertificates", len(t.TlsCertificates) > 0},
	} {
		if f.given {
			c.fail(badSidecarTLS, at.field(f.field), "%s is not supported for sidecar ingress TLS", f.field).hint("sidecars take certificates from files")
		}
	}
	if t.Mode == networking.ServerTLSSettings_ISTIO_MUTUAL || t.Mode == networking.ServerTLSSettings_AUTO_PASSTHROUGH {
		c.fail(badSidecarTLS, at.field("mode"), "%s is not supported for sidecar ingress TLS", t.Mode).hint("choose SIMPLE or MUTUAL")
	}
}

func (c *checker) egress(at path, list []*networking.IstioEgressListener) {
	type place struct {
		bind string
		port uint32
	}
	seen := map[place]bool{}
	for i, l := range list {
		here := at.index(i)
		c.egressHosts(here.field("hosts"), l.GetHosts())
		c.egressBind(here, l)
		switch p := l.GetPort(); {
		case p == nil && i < len(list)-1:
			c.fail(sameListener, here, "the egress listener with empty port should be the last listener in the list, and the only one").
				hint("give it a port, or move it to the end")
		case p != nil && seen[place{l.Bind, p.Number}]:
			c.fail(sameListener, here.field("port"), "ports on egress listeners must be unique: another has port %d and the same bind", p.Number)
		case p != nil:
			seen[place{l.Bind, p.Number}] = true
		}
	}
}

// egressBind checks where a listener is, and how traffic gets to it.
func (c *checker) egressBind(at path, l *networking.IstioEgressListener) {
	file, unix := strings.CutPrefix(l.GetBind(), unixScheme)
	if unix {
		c.socket(at.field("bind"), file)
		if l.CaptureMode != networking.CaptureMode_DEFAULT && l.CaptureMode != networking.CaptureMode_NONE {
			c.fail(badCapture, at.field("captureMode"), "captureMode must be DEFAULT/NONE for unix domain socket listeners")
		}
	} else if l.GetBind() != "" && !isIP(l.Bind) {
		c.fail(badAddress, at.field("bind"), "%s is neither an IP address nor unix://PATH", quote(l.Bind))
	}
	p := l.GetPort()
	if p == nil {
		return
	}
	c.sidecarPort(at.field("port"), p)
	if !unix {
		c.port(at.field("port").field("number"), p.Number)
	} else if p.Number != 0 {
		c.fail(badPort, at.field("port").field("number"), "port number must be 0 for unix domain socket %s", quote(l.Bind))
	}
}

func (c *checker) egressHosts(at path, hosts []string) {
	if len(hosts) == 0 {
		c.fail(emptySidecar, at, "egress listener must contain at least one host").hint("write */* for all, ./* for those of this namespace, ~/* for none")
	}
	all := map[string]bool{}
	for i, each := range hosts {
		c.scoped(at.index(i), each, false)
		if namespace, host, _ := strings.Cut(each, "/"); host == "*" && !excluded(namespace) {
			all[c.namespaceOf(namespace)] = true
		}
	}
	for i, each := range hosts {
		namespace, host, _ := strings.Cut(each, "/")
		if excluded(namespace) {
			continue
		}
		namespace = c.namespaceOf(namespace)
		if all["*"] && namespace+host != "**" || host != "*" && all[namespace] {
			c.warn(redundantHost, at.index(i), "%s is covered by another host of this listener", quote(each)).hint("remove it, or the one with a wildcard")
		}
	}
}

// excluded reports whether hosts of a namespace are left out of what others import.
func excluded(namespace string) bool { return strings.HasPrefix(namespace, "~") }

func (c *checker) namespaceOf(name string) string {
	if name == "." {
		return c.Namespace
	}
	return name
}
