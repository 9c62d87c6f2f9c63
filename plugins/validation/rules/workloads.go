package rules

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

func (c *checker) workloadEntry(at path, w *networking.WorkloadEntry) {
	switch file, unix := strings.CutPrefix(w.Address, unixScheme); {
	case unix:
		c.socket(at.field("address"), file)
		if len(w.Ports) > 0 {
			c.fail(badEndpoint, at.field("ports"), "Unix domain socket %s must not have ports", quote(w.Address))
		}
	case w.Address == "" && w.Network == "":
		c.fail(badAddress, at.field("address"), "Address is required")
	case w.Address == "":
		c.warn(noAddress, at.field("address"), "address is unset with network %s: it is reachable through the network's gateway alone", quote(w.Network))
	default:
		c.nameOrIP(at.field("address"), w.Address)
	}
	c.workload(at, w)
}

// workload checks what entries and a group's template have in common.
func (c *checker) workload(at path, w *networking.WorkloadEntry) {
	c.labels(at.field("labels"), w.GetLabels())
	for _, name := range sorted(w.GetPorts()) {
		here := at.field("ports").key(name)
		c.portName(here, name)
		c.port(here, w.Ports[name])
	}
}

func (c *checker) workloadGroup(at path, g *networking.WorkloadGroup) {
	c.labels(at.field("metadata").field("labels"), g.GetMetadata().GetLabels())
	c.workload(at.field("template"), g.Template)
	if g.Probe != nil {
		c.probe(at.field("probe"), g.Probe)
	}
}

func (c *checker) probe(at path, p *networking.ReadinessProbe) {
	switch method := p.HealthCheckMethod.(type) {
	case nil:
		c.fail(badProbe, at, "health check method is required").hint("write one of httpGet, tcpSocket, exec and grpc")
	case *networking.ReadinessProbe_HttpGet:
		here := at.field("httpGet")
		h := method.HttpGet
		c.port(here.field("port"), h.GetPort())
		if h.GetPath() != "" && !strings.HasPrefix(h.Path, "/") {
			c.warn(badProbe, here.field("path"), "path %s should begin with /", quote(h.Path))
		}
		if h.GetScheme() != "" && h.Scheme != "HTTP" && h.Scheme != "HTTPS" {
			c.fail(badProbe, here.field("scheme"), "scheme must be one of HTTP and HTTPS, not %s", quote(h.Scheme))
		}
		for i, header := range h.GetHttpHeaders() {
			c.headerName(here.field("httpHeaders").index(i).field("name"), header.GetName())
		}
	case *networking.ReadinessProbe_TcpSocket:
		c.port(at.field("tcpSocket").field("port"), method.TcpSocket.GetPort())
	case *networking.ReadinessProbe_Grpc:
		c.port(at.field("grpc").field("port"), method.Grpc.GetPort())
	case *networking.ReadinessProbe_Exec:
		if len(method.Exec.GetCommand()) == 0 {
			c.fail(badProbe, at.field("exec").field("command"), "command is required")
		}
	}
}
