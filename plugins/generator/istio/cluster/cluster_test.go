package cluster

import (
	"testing"

	networking "istio.io/api/networking/v1alpha3"
)

func TestName(t *testing.T) {
	n := Name{Port: 80, Subset: "v1", Host: "a.b"}
	if n.String() != "outbound|80|v1|a.b" || n.SNI() != "outbound_.80_.v1_.a.b" {
		t.Error(n.String(), n.SNI())
	}
	if got, ok := ParseName(n.String()); !ok || got != n {
		t.Error(got, ok)
	}
	for _, s := range []string{"", "inbound|80||", "outbound|x||a", "outbound|80|a", "outbound|99999||a"} {
		if _, ok := ParseName(s); ok {
			t.Errorf("%q is no outbound cluster", s)
		}
	}
}

// Endpoints are spoken to as the nearest settings of TLS say, be they a subset's, a port's or the
// rule's.
func TestTLSTowards(t *testing.T) {
	const simple, mutual, off = networking.ClientTLSSettings_SIMPLE, networking.ClientTLSSettings_MUTUAL, networking.ClientTLSSettings_DISABLE
	tls := func(m networking.ClientTLSSettings_TLSmode) *networking.ClientTLSSettings {
		return &networking.ClientTLSSettings{Mode: m}
	}
	at := func(port uint32, s *networking.ClientTLSSettings) *networking.TrafficPolicy_PortTrafficPolicy {
		return &networking.TrafficPolicy_PortTrafficPolicy{Port: &networking.PortSelector{Number: port}, Tls: s}
	}
	ports := func(list ...*networking.TrafficPolicy_PortTrafficPolicy) []*networking.TrafficPolicy_PortTrafficPolicy {
		return list
	}
	rule := &networking.DestinationRule{
		TrafficPolicy: &networking.TrafficPolicy{Tls: tls(simple), PortLevelSettings: ports(at(80, nil), at(90, tls(mutual)))},
		Subsets: []*networking.Subset{
			{Name: "none"}, {Name: "own", TrafficPolicy: &networking.TrafficPolicy{PortLevelSettings: ports(at(90, tls(off)))}},
		},
	}
	for _, c := range []struct {
		subset string
		port   uint32
		want   networking.ClientTLSSettings_TLSmode
	}{
		{"", 80, simple}, {"", 90, mutual}, {"none", 90, mutual}, {"own", 90, off}, {"own", 80, simple},
	} {
		if got := TLSTowards(rule, c.subset, c.port).GetMode(); got != c.want {
			t.Errorf("%q at %d: %v, want %v", c.subset, c.port, got, c.want)
		}
	}
	if TLSTowards(nil, "", 80) != nil {
		t.Error("no rule, no settings")
	}
}

func TestPolicyFor(t *testing.T) {
	simple := func(s networking.LoadBalancerSettings_SimpleLB) *networking.LoadBalancerSettings {
		return &networking.LoadBalancerSettings{LbPolicy: &networking.LoadBalancerSettings_Simple{Simple: s}}
	}
	tls := &networking.ClientTLSSettings{Mode: networking.ClientTLSSettings_DISABLE}
	at := func(port uint32, lb *networking.LoadBalancerSettings) []*networking.TrafficPolicy_PortTrafficPolicy {
		return []*networking.TrafficPolicy_PortTrafficPolicy{{Port: &networking.PortSelector{Number: port}, LoadBalancer: lb}}
	}
	rule := &networking.DestinationRule{
		TrafficPolicy: &networking.TrafficPolicy{
			LoadBalancer: simple(networking.LoadBalancerSettings_RANDOM), Tls: tls,
			PortLevelSettings: at(90, simple(networking.LoadBalancerSettings_ROUND_ROBIN)),
		},
		Subsets: []*networking.Subset{
			{Name: "plain"},
			{Name: "own", TrafficPolicy: &networking.TrafficPolicy{LoadBalancer: simple(networking.LoadBalancerSettings_PASSTHROUGH)}},
		},
	}
	for _, c := range []struct {
		subset string
		port   uint32
		lb     networking.LoadBalancerSettings_SimpleLB
		tls    bool
	}{
		{"", 80, networking.LoadBalancerSettings_RANDOM, true},
		{"", 90, networking.LoadBalancerSettings_ROUND_ROBIN, false}, // a port's settings stand alone
		{"plain", 80, networking.LoadBalancerSettings_RANDOM, true},
		{"own", 80, networking.LoadBalancerSettings_PASSTHROUGH, true},
		{"own", 90, networking.LoadBalancerSettings_PASSTHROUGH, false},
		{"unknown", 80, networking.LoadBalancerSettings_RANDOM, true},
	} {
		p := PolicyFor(rule, c.subset, c.port)
		if p.GetLoadBalancer().GetSimple() != c.lb || (p.GetTls() != nil) != c.tls {
			t.Errorf("%q %d: %v", c.subset, c.port, p)
		}
	}
	if PolicyFor(nil, "", 80) != nil {
		t.Error("no rule, no policy")
	}
}
