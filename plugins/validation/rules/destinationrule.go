//lint:file-ignore SA1019 deprecated fields are read to say so, and to check them all the same

package rules

import networking "istio.io/api/networking/v1alpha3"

// Codes about DestinationRules.
const (
	emptyPolicy  = "COX2301"
	badPool      = "COX2302"
	badBalancer  = "COX2303"
	badLocality  = "COX2304"
	badDetection = "COX2305"
	badSubset    = "COX2306"
	badTunnel    = "COX2307"
)

func (c *checker) destinationRule(at path, d *networking.DestinationRule) {
	c.host(at.field("host"), d.Host)
	c.trafficPolicy(at.field("trafficPolicy"), d.TrafficPolicy)
	seen := map[string]bool{}
	for i, s := range d.Subsets {
		here := at.field("subsets").index(i)
		name := s.GetName()
		switch {
		case name == "":
			c.fail(badSubset, here.field("name"), "subset name cannot be empty")
		case !isLabel(name):
			c.fail(badSubset, here.field("name"), "subset name is invalid: %s", quote(name)).hint("use letters, digits and '-', at most 63")
		case seen[name]:
			c.fail(badSubset, here.field("name"), "duplicate subset names %s", quote(name))
		}
		seen[name] = true
		c.labels(here.field("labels"), s.GetLabels())
		c.trafficPolicy(here.field("trafficPolicy"), s.GetTrafficPolicy())
	}
	c.exportTo(at.field("exportTo"), d.ExportTo, false)
	c.ruleSelector(at, d)
}

// ruleSelector checks which clients a rule is for: those of its own namespace.
func (c *checker) ruleSelector(at path, d *networking.DestinationRule) {
	if d.WorkloadSelector == nil {
		return
	}
	if len(d.WorkloadSelector.MatchLabels) == 0 {
		c.warn(emptySelector, at.field("workloadSelector"), "workload selector specified without labels: it applies to all workloads of the namespace").
			hint("leave the selector out, if that is meant")
	}
	c.selectorKeys(at.field("workloadSelector").field("matchLabels"), d.WorkloadSelector.MatchLabels)
	for i, each := range d.ExportTo {
		if each != "." && each != c.Namespace {
			c.fail(badExportTo, at.field("exportTo").index(i),
				"a destination rule with a workload selector can only be exported to its own namespace").hint("write .")
		}
	}
}

func (c *checker) trafficPolicy(at path, p *networking.TrafficPolicy) {
	if p == nil {
		return
	}
	if p.LoadBalancer == nil && p.ConnectionPool == nil && p.OutlierDetection == nil && p.Tls == nil && len(p.PortLevelSettings) == 0 &&
		p.Tunnel == nil && p.ProxyProtocol == nil && p.RetryBudget == nil {
		c.fail(emptyPolicy, at, "traffic policy must have at least one field")
	}
	c.tunnel(at, p)
	c.policyParts(at, p)
	for i, each := range p.PortLevelSettings {
		here := at.field("portLevelSettings").index(i)
		if each.GetPort() == nil {
			c.fail(badPort, here.field("port"), "portLevelSettings must name a port")
		} else {
			c.port(here.field("port").field("number"), each.Port.Number)
		}
		if each.GetLoadBalancer() == nil && each.GetConnectionPool() == nil && each.GetOutlierDetection() == nil && each.GetTls() == nil {
			c.fail(emptyPolicy, here, "port traffic policy must have at least one field")
		}
		c.policyParts(here, each)
	}
}

// parts is what policies of a host and of a port have both.
type parts interface {
	GetLoadBalancer() *networking.LoadBalancerSettings
	GetConnectionPool() *networking.ConnectionPoolSettings
	GetOutlierDetection() *networking.OutlierDetection
	GetTls() *networking.ClientTLSSettings
}

func (c *checker) policyParts(at path, p parts) {
	c.loadBalancer(at.field("loadBalancer"), p.GetLoadBalancer(), p.GetOutlierDetection())
	c.connectionPool(at.field("connectionPool"), p.GetConnectionPool())
	c.outlierDetection(at.field("outlierDetection"), p.GetOutlierDetection())
	c.clientTLS(at.field("tls"), p.GetTls())
}

func (c *checker) tunnel(at path, p *networking.TrafficPolicy) {
	t := p.Tunnel
	if t == nil {
		return
	}
	at = at.field("tunnel")
	if p.ProxyProtocol != nil {
		c.fail(badTunnel, at, "tunnel and proxyProtocol must not be set together")
	}
	if t.Protocol != "" && t.Protocol != "CONNECT" && t.Protocol != "POST" {
		c.fail(badTunnel, at.field("protocol"), `tunnel protocol must be "CONNECT" or "POST", not %s`, quote(t.Protocol))
	}
	c.nameOrIP(at.field("targetHost"), t.TargetHost)
	c.port(at.field("targetPort"), t.TargetPort)
}

func (c *checker) connectionPool(at path, p *networking.ConnectionPoolSettings) {
	if p == nil {
		return
	}
	if p.Tcp == nil && p.Http == nil {
		c.fail(badPool, at, "connection pool must have at least one field")
	}
	if t := p.Tcp; t != nil {
		here := at.field("tcp")
		c.natural(here.field("maxConnections"), t.MaxConnections)
		c.duration(here.field("connectTimeout"), t.ConnectTimeout, false)
		c.duration(here.field("maxConnectionDuration"), t.MaxConnectionDuration, false)
		c.duration(here.field("idleTimeout"), t.IdleTimeout, true)
	}
	if h := p.Http; h != nil {
		c.httpPool(at.field("http"), h)
	}
}

func (c *checker) httpPool(at path, h *networking.ConnectionPoolSettings_HTTPSettings) {
	c.natural(at.field("http1MaxPendingRequests"), h.Http1MaxPendingRequests)
	c.natural(at.field("http2MaxRequests"), h.Http2MaxRequests)
	c.natural(at.field("maxRequestsPerConnection"), h.MaxRequestsPerConnection)
	c.natural(at.field("maxRetries"), h.MaxRetries)
	c.natural(at.field("maxConcurrentStreams"), h.MaxConcurrentStreams)
	c.duration(at.field("idleTimeout"), h.IdleTimeout, true)
	if h.H2UpgradePolicy == networking.ConnectionPoolSettings_HTTPSettings_UPGRADE && h.UseClientProtocol {
		c.fail(badPool, at, "use client protocol must not be true when H2UpgradePolicy is UPGRADE").hint("keep one")
	}
}

func (c *checker) outlierDetection(at path, o *networking.OutlierDetection) {
	if o == nil {
		return
	}
	c.duration(at.field("interval"), o.Interval, false)
	c.duration(at.field("baseEjectionTime"), o.BaseEjectionTime, false)
	c.percent(at.field("maxEjectionPercent"), float64(o.MaxEjectionPercent))
	c.percent(at.field("minHealthPercent"), float64(o.MinHealthPercent))
	if o.GetConsecutiveErrors() != 0 {
		c.obsolete(at.field("consecutiveErrors"), "use consecutive5xxErrors or consecutiveGatewayErrors instead")
	}
	if !o.SplitExternalLocalOriginErrors && o.ConsecutiveLocalOriginFailures.GetValue() > 0 {
		c.fail(badDetection, at.field("consecutiveLocalOriginFailures"), "consecutiveLocalOriginFailures has no effect without splitExternalLocalOriginErrors").
			hint("set splitExternalLocalOriginErrors: true")
	}
}
