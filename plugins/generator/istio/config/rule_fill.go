package config

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"
)

// OfGateway stands in settings of TLS in the place of a client's certificate: it is the one that
// the client's Gateway shows to backends, if it shows one. Policies of the Gateway API mean that.
const OfGateway = "gateway://"

// showOwn writes OfGateway into the settings of a policy.
func showOwn(p *networking.TrafficPolicy) {
	if p.GetTls() != nil {
		p.Tls.ClientCertificate = OfGateway
	}
	for _, s := range p.GetPortLevelSettings() {
		if s.Tls != nil {
			s.Tls.ClientCertificate = OfGateway
		}
	}
}

// fill adds to a rule what a policy says besides. TLS that the policy asks for counts for each port
// of which the rule says no TLS, in its subsets, too: settings of a port hide all others, and one
// who bounds a port's connections doesn't mean to send its bytes in plain text. Nothing of what it
// had is changed, but copied.
func fill(spec *networking.DestinationRule, more *networking.TrafficPolicy) {
	if more == nil {
		return
	}
	ownTLS := spec.TrafficPolicy.GetTls()
	spec.TrafficPolicy = filled(spec.TrafficPolicy, more)
	for i, s := range spec.Subsets {
		p := s.GetTrafficPolicy()
		if len(p.GetPortLevelSettings()) == 0 {
			continue
		}
		policy := copied(p)
		policy.PortLevelSettings = secured(p.PortLevelSettings, or(p.Tls, ownTLS), more)
		spec.Subsets[i] = &networking.Subset{Name: s.Name, Labels: s.Labels, TrafficPolicy: policy}
	}
}

func filled(own, more *networking.TrafficPolicy) *networking.TrafficPolicy {
	if own == nil {
		return more
	}
	out := copied(own)
	out.LoadBalancer = or(own.LoadBalancer, more.LoadBalancer)
	out.ConnectionPool = or(own.ConnectionPool, more.ConnectionPool)
	out.OutlierDetection = or(own.OutlierDetection, more.OutlierDetection)
	out.Tls = or(own.Tls, more.Tls)
	out.RetryBudget = or(own.RetryBudget, more.RetryBudget)
	out.PortLevelSettings = secured(own.PortLevelSettings, own.Tls, more)
	for _, p := range more.PortLevelSettings {
		if portSettings(out.PortLevelSettings, p.GetPort().GetNumber()) != nil {
			continue
		}
		out.PortLevelSettings = append(out.PortLevelSettings, &networking.TrafficPolicy_PortTrafficPolicy{
			Port:             p.Port,
			LoadBalancer:     or(p.LoadBalancer, own.LoadBalancer),
			ConnectionPool:   or(p.ConnectionPool, own.ConnectionPool),
			OutlierDetection: or(p.OutlierDetection, own.OutlierDetection),
			Tls:              p.Tls,
		})
	}
	return out
}

// secured are settings of ports with the TLS that a policy asks for, where neither they nor what is
// said of all ports (all) say any.
func secured(
	list []*networking.TrafficPolicy_PortTrafficPolicy, all *networking.ClientTLSSettings, more *networking.TrafficPolicy,
) []*networking.TrafficPolicy_PortTrafficPolicy {
	out := slices.Clone(list)
	for i, p := range list {
		tls := portSettings(more.PortLevelSettings, p.GetPort().GetNumber()).GetTls()
		if tls == nil && all == nil {
			tls = more.Tls
		}
		if p.Tls != nil || tls == nil {
			continue
		}
		out[i] = &networking.TrafficPolicy_PortTrafficPolicy{
			Port: p.Port, LoadBalancer: p.LoadBalancer, ConnectionPool: p.ConnectionPool, OutlierDetection: p.OutlierDetection, Tls: tls,
		}
	}
	return out
}

func portSettings(list []*networking.TrafficPolicy_PortTrafficPolicy, port uint32) *networking.TrafficPolicy_PortTrafficPolicy {
	for _, p := range list {
		if p.GetPort().GetNumber() == port {
			return p
		}
	}
	return nil
}

func copied(p *networking.TrafficPolicy) *networking.TrafficPolicy {
	return &networking.TrafficPolicy{
		LoadBalancer: p.LoadBalancer, ConnectionPool: p.ConnectionPool, OutlierDetection: p.OutlierDetection, Tls: p.Tls,
		PortLevelSettings: p.PortLevelSettings, Tunnel: p.Tunnel, ProxyProtocol: p.ProxyProtocol, RetryBudget: p.RetryBudget,
	}
}

func or[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}
