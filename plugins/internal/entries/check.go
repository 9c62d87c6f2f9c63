// Package entries says which ServiceEntries can be served: to registry/serviceentry, which serves
// them, and to the validation of whatever comes in, so that both say the same.
package entries

import (
	"fmt"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/internal/workloadentry"
)

// Problem is why a ServiceEntry can't be served. Field is its path in the spec, such as hosts[0].
type Problem struct{ Field, Reason string }

// Error implements error.
func (p Problem) Error() string { return p.Field + ": " + p.Reason }

type checker struct{ found []Problem }

func (c *checker) fail(field, format string, args ...any) {
	c.found = append(c.found, Problem{field, fmt.Sprintf(format, args...)})
}

// Check returns what in a ServiceEntry can't be served.
// Source: Istio API, ServiceEntry; Istio, pkg/config/validation.
func Check(se *networking.ServiceEntry) []Problem {
	c := &checker{}
	if len(se.Hosts) == 0 {
		c.fail("hosts", "at least one is needed")
	}
	for i, h := range se.Hosts {
		if !hosts.ValidName(h, true) && !hosts.IsPartial(h) {
			c.fail(at("hosts", i), "%q is not a DNS name, nor one that begins with a wildcard", h)
		}
	}
	for i, a := range se.Addresses {
		if _, ok := hosts.VirtualAddress(a); !ok {
			c.fail(at("addresses", i), "%q is neither an IP address nor a CIDR", a)
		}
	}
	c.ports(se.Ports)
	c.resolution(se)
	for i, e := range se.Endpoints {
		c.endpoint(at("endpoints", i), se, e)
	}
	return c.found
}

func at(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }

func (c *checker) ports(ports []*networking.ServicePort) {
	names, numbers := map[string]bool{}, map[uint32]bool{}
	for i, p := range ports {
		here := at("ports", i)
		if p.GetNumber() == 0 || p.GetNumber() > 65535 {
			c.fail(here+".number", "%d is not between 1 and 65535", p.GetNumber())
		}
		if p.GetTargetPort() > 65535 {
			c.fail(here+".targetPort", "%d is not between 1 and 65535", p.GetTargetPort())
		}
		if names[p.GetName()] {
			c.fail(here+".name", "%q is there twice", p.GetName())
		}
		if numbers[p.GetNumber()] {
			c.fail(here+".number", "%d is there twice", p.GetNumber())
		}
		names[p.GetName()], numbers[p.GetNumber()] = true, true
	}
}

func (c *checker) resolution(se *networking.ServiceEntry) {
	if _, ok := networking.ServiceEntry_Resolution_name[int32(se.Resolution)]; !ok {
		c.fail("resolution", "unknown value %d", se.Resolution)
	}
	if se.WorkloadSelector != nil && len(se.Endpoints) > 0 {
		c.fail("workloadSelector", "it and endpoints exclude each other")
	}
	if se.Resolution == networking.ServiceEntry_NONE && len(se.Endpoints) > 0 {
		c.fail("endpoints", "none are possible with resolution NONE")
	}
	if se.Resolution == networking.ServiceEntry_DYNAMIC_DNS {
		c.dynamic(se)
	}
	if !ByDNS(se.Resolution) || len(se.Endpoints) > 0 || se.WorkloadSelector != nil {
		return
	}
	for i, h := range se.Hosts {
		if strings.HasPrefix(h, "*") {
			c.fail(at("hosts", i), "%q can't be resolved by DNS; give endpoints or resolution DYNAMIC_DNS", h)
		}
	}
}

// dynamic checks an entry whose hosts proxies look up by the name that a request or a TLS hello
// says.
func (c *checker) dynamic(se *networking.ServiceEntry) {
	for i, h := range se.Hosts {
		if !strings.HasPrefix(h, "*") {
			c.fail(at("hosts", i), "host must be wildcarded for resolution mode DYNAMIC_DNS; of %q there is one, for which DNS is right", h)
		}
	}
	if len(se.Endpoints) > 0 {
		c.fail("endpoints", "endpoints cannot be set for resolution type DYNAMIC_DNS")
	}
	if se.WorkloadSelector != nil {
		c.fail("workloadSelector", "it cannot be set for resolution type DYNAMIC_DNS")
	}
	for i, p := range se.Ports {
		switch strings.ToUpper(p.GetProtocol()) {
		case "HTTP", "HTTPS", "TLS", "GRPC", "HTTP2":
		default:
			c.fail(at("ports", i)+".protocol",
				"only HTTP, TLS, GRPC, and HTTP2 protocols are supported for resolution type DYNAMIC_DNS, for no other says a host's name")
		}
	}
}

func (c *checker) endpoint(here string, se *networking.ServiceEntry, e *networking.WorkloadEntry) {
	if err := workloadentry.CheckAddress(e); err != nil {
		c.fail(here, "%v", err)
		return
	}
	_, unix := hosts.Path(e.Address)
	switch {
	case unix && se.Resolution != networking.ServiceEntry_STATIC:
		c.fail(here+".address", "Unix sockets need resolution STATIC, not %v", se.Resolution)
	case se.Resolution == networking.ServiceEntry_STATIC && !unix && e.Address != "" && !hosts.IsIP(e.Address):
		c.fail(here+".address", "%q is no IP address, which resolution STATIC needs; resolution DNS takes names", e.Address)
	}
	for name, number := range e.Ports {
		if !hasPort(se, name) {
			c.fail(here+".ports", "the service has no port %q", name)
		}
		if number > 65535 {
			c.fail(here+".ports."+name, "%d is not between 1 and 65535", number)
		}
	}
}

func hasPort(se *networking.ServiceEntry, name string) bool {
	for _, p := range se.Ports {
		if p.Name == name {
			return true
		}
	}
	return false
}

// ByDNS reports whether hosts are looked up in DNS beforehand.
func ByDNS(r networking.ServiceEntry_Resolution) bool {
	return r == networking.ServiceEntry_DNS || r == networking.ServiceEntry_DNS_ROUND_ROBIN
}
