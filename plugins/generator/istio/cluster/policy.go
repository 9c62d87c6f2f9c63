package cluster

import networking "istio.io/api/networking/v1alpha3"

// PolicyFor is a rule's policy for a port, and for a subset where one is named: a subset's settings
// hide the rule's, and settings of a port stand alone, without what they leave out.
func PolicyFor(rule *networking.DestinationRule, subset string, port uint32) *networking.TrafficPolicy {
	policy, _ := atPort(rule.GetTrafficPolicy(), port)
	if s := FindSubset(rule, subset); s != nil && s.TrafficPolicy != nil {
		own, alone := atPort(s.TrafficPolicy, port)
		return overlay(policy, own, alone)
	}
	return policy
}

// TLSTowards are the settings by which clients know how to speak to the endpoints of a port. Unlike
// those of its cluster (PolicyFor), a port's settings hide only what they say themselves.
func TLSTowards(rule *networking.DestinationRule, subset string, port uint32) *networking.ClientTLSSettings {
	return or(tlsAt(FindSubset(rule, subset).GetTrafficPolicy(), port), tlsAt(rule.GetTrafficPolicy(), port))
}

func tlsAt(p *networking.TrafficPolicy, port uint32) *networking.ClientTLSSettings {
	for _, s := range p.GetPortLevelSettings() {
		if s.GetPort().GetNumber() == port && s.Tls != nil {
			return s.Tls
		}
	}
	return p.GetTls()
}

// atPort is a policy for a port; alone: the port has settings of its own, and no others count for
// it.
func atPort(p *networking.TrafficPolicy, port uint32) (policy *networking.TrafficPolicy, alone bool) {
	for _, s := range p.GetPortLevelSettings() {
		if s.GetPort().GetNumber() == port {
			return &networking.TrafficPolicy{
				ConnectionPool: s.ConnectionPool, LoadBalancer: s.LoadBalancer, OutlierDetection: s.OutlierDetection, Tls: s.Tls,
			}, true
		}
	}
	return p, false
}

// Underlay is a policy with the mesh's baseline for connection pools and outliers, where it says
// nothing of them.
func (m Mesh) Underlay(p *networking.TrafficPolicy) *networking.TrafficPolicy {
	pool, outliers := m.Baseline.GetConnectionPool(), m.Baseline.GetOutlierDetection()
	if (pool == nil || p.GetConnectionPool() != nil) && (outliers == nil || p.GetOutlierDetection() != nil) {
		return p
	}
	out := &networking.TrafficPolicy{}
	if p != nil {
		out = &networking.TrafficPolicy{
			LoadBalancer: p.LoadBalancer, Tls: p.Tls, Tunnel: p.Tunnel, ProxyProtocol: p.ProxyProtocol, RetryBudget: p.RetryBudget,
			PortLevelSettings: p.PortLevelSettings,
		}
	}
	out.ConnectionPool, out.OutlierDetection = or(p.GetConnectionPool(), pool), or(p.GetOutlierDetection(), outliers)
	return out
}

// FindSubset returns a rule's subset by name, nil where it has none.
func FindSubset(rule *networking.DestinationRule, name string) *networking.Subset {
	if name == "" {
		return nil
	}
	for _, s := range rule.GetSubsets() {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// overlay is a rule's policy with what a subset's says instead. A subset's settings for the port
// alone hide all that settings for ports can say.
func overlay(base, over *networking.TrafficPolicy, alone bool) *networking.TrafficPolicy {
	if base == nil {
		return over
	}
	out := &networking.TrafficPolicy{
		ConnectionPool:   over.ConnectionPool,
		LoadBalancer:     over.LoadBalancer,
		OutlierDetection: over.OutlierDetection,
		Tls:              over.Tls,
		Tunnel:           or(over.Tunnel, base.Tunnel),
		ProxyProtocol:    or(over.ProxyProtocol, base.ProxyProtocol),
		RetryBudget:      or(over.RetryBudget, base.RetryBudget),
	}
	if !alone {
		out.ConnectionPool = or(over.ConnectionPool, base.ConnectionPool)
		out.LoadBalancer = or(over.LoadBalancer, base.LoadBalancer)
		out.OutlierDetection = or(over.OutlierDetection, base.OutlierDetection)
		out.Tls = or(over.Tls, base.Tls)
	}
	return out
}

func or[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}
