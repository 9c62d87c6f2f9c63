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
