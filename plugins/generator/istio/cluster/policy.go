package cluster

import networking "istio.io/api/networking/v1alpha3"

// PolicyFor is a rule's policy for a port, and for a subset where one is named: a subset's settings hide the rule's, and
// settings of a port stand alone, without what they leave out.
func PolicyFor(rule *networking.DestinationRule, subset string, port uint32) *networking.TrafficPolicy {
	policy := overlay(nil, rule.GetTrafficPolicy(), port)
	if s := FindSubset(rule, subset); s != nil {
		policy = overlay(policy, s.TrafficPolicy, port)
	}
	return policy
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

func overlay(base, over *networking.TrafficPolicy, port uint32) *networking.TrafficPolicy {
	if over == nil {
		return base
	}
	out := &networking.TrafficPolicy{
		ConnectionPool:   or(over.ConnectionPool, base.GetConnectionPool()),
		LoadBalancer:     or(over.LoadBalancer, base.GetLoadBalancer()),
		OutlierDetection: or(over.OutlierDetection, base.GetOutlierDetection()),
		Tls:              or(over.Tls, base.GetTls()),
		Tunnel:           or(over.Tunnel, base.GetTunnel()),
		ProxyProtocol:    or(over.ProxyProtocol, base.GetProxyProtocol()),
		RetryBudget:      or(over.RetryBudget, base.GetRetryBudget()),
	}
	for _, p := range over.PortLevelSettings {
		if p.GetPort().GetNumber() == port {
			out.ConnectionPool, out.LoadBalancer, out.OutlierDetection, out.Tls = p.ConnectionPool, p.LoadBalancer, p.OutlierDetection, p.Tls
			break
		}
	}
	return out
}

func or[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}
