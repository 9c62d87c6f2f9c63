package rules

import (
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/entries"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

// Codes about ServiceEntries and workloads.
const (
	badResolution = "COX2401"
	badEndpoint   = "COX2402"
	indistinct    = "COX2403"
	badProbe      = "COX2404"
	noAddress     = "COX2405"
	unservable    = "COX2406"
	// NeedsAddress is of a ServiceEntry without addresses whose protocol tells no hosts apart.
	NeedsAddress = "IST0134"
)

func (c *checker) serviceEntry(at path, s *networking.ServiceEntry) {
	for i, host := range s.Hosts {
		here := at.field("hosts").index(i)
		if c.host(here, host) && isPartial(host) {
			c.warn(badWildcard, here, "partial wildcard %s: it is served at ports for HTTP alone, as no TLS hello "+
				"can be matched by it", quote(host)).hint("elsewhere a wildcard stands for whole labels: " +
				"*.example.com")
		}
	}
	if s.WorkloadSelector != nil && len(s.WorkloadSelector.GetLabels()) == 0 {
		c.warn(emptySelector, at.field("workloadSelector"), "workload selector specified without labels: it selects no workload").hint("say labels")
	}
	c.selectorKeys(at.field("workloadSelector").field("labels"), s.WorkloadSelector.GetLabels())
	for i, address := range s.Addresses {
		c.subnet(at.field("addresses").index(i), address)
	}
	c.servicePorts(at.field("ports"), s)
	c.resolution(at, s)
	c.endpointPorts(at.field("endpoints"), s)
	c.exportTo(at.field("exportTo"), s.ExportTo, true)
	if finding.Refuses(c.found) {
		return
	}
	for _, p := range entries.Check(s) { // what serves the entry would not
		c.fail(unservable, at.field(p.Field), "%s", p.Reason)
	}
}

func (c *checker) servicePorts(at path, s *networking.ServiceEntry) {
	stream, crypt := false, false
	shared := s.Resolution != networking.ServiceEntry_NONE && len(s.Hosts) > 1
	for i, p := range s.Ports {
		here := at.index(i)
		c.portName(here.field("name"), p.GetName())
		c.port(here.field("number"), p.GetNumber())
		protocol := ""
		if p.GetProtocol() != "" {
			protocol = c.protocol(here.field("protocol"), p.Protocol)
		}
		if shared && !speaksHTTP(protocol) && !speaksTLS(protocol) {
			c.fail(indistinct, here, "multiple hosts provided with non-HTTP, non-TLS ports: nothing tells them apart").
				hint("make a ServiceEntry for each host")
		}
		if p.GetTargetPort() != 0 {
			c.targetPort(here.field("targetPort"), p, s)
		}
		stream = stream || protocol == "" || protocol == "TCP"
		crypt = crypt || protocol == "" || protocol == "TCP" || speaksTLS(protocol)
	}
	if len(s.Addresses) == 0 && stream {
		c.warn(NeedsAddress, at, "addresses are required for ports serving TCP (or unset) protocol").
			hint("without one, the port takes all traffic to its number; give addresses, or name a protocol that tells hosts apart")
	}
	if s.Resolution == networking.ServiceEntry_DNS && len(s.Hosts) > 1 && len(s.Addresses) > 0 && crypt {
		c.warn(indistinct, at, "several hosts share addresses: their non-HTTP traffic cannot be told apart").hint("make a ServiceEntry for each host")
	}
}

func (c *checker) targetPort(at path, p *networking.ServicePort, s *networking.ServiceEntry) {
	c.port(at, p.TargetPort)
	if s.Resolution == networking.ServiceEntry_NONE && s.WorkloadSelector == nil && p.TargetPort != p.Number {
		c.warn(badResolution, at, "targetPort has no effect with resolution NONE: traffic goes where it was sent to")
	}
}

// resolution checks that the way in which addresses are found fits what is given.
func (c *checker) resolution(at path, s *networking.ServiceEntry) {
	endpoints := at.field("endpoints")
	if s.WorkloadSelector != nil && s.Resolution == networking.ServiceEntry_NONE {
		c.warn(badResolution, at.field("resolution"), "workloadSelector has no effect with resolution NONE").hint("write resolution: STATIC")
	}
	switch s.Resolution {
	case networking.ServiceEntry_STATIC:
		c.staticEndpoints(endpoints, s)
	case networking.ServiceEntry_DNS, networking.ServiceEntry_DNS_ROUND_ROBIN:
		c.dnsEndpoints(at, s)
	}
	for i, e := range s.Endpoints {
		if e.GetAddress() == "" && e.GetNetwork() != "" {
			c.warn(noAddress, endpoints.index(i), "address is unset: it is reachable through its network's gateway alone")
		}
		c.labels(endpoints.index(i).field("labels"), e.GetLabels())
	}
}

func (c *checker) staticEndpoints(at path, s *networking.ServiceEntry) {
	sockets := false
	for i, e := range s.Endpoints {
		here := at.index(i).field("address")
		address := e.GetAddress()
		switch file, unix := strings.CutPrefix(address, unixScheme); {
		case unix:
			sockets = true
			c.socket(here, file)
		case address == "" && e.GetNetwork() != "":
		case !isIP(address):
			c.fail(badResolution, here, "STATIC resolution requires an IP address or a Unix domain socket, not %s",
				quote(address)).hint("for names, write resolution: DNS")
		}
	}
	if sockets && len(s.Ports) != 1 {
		c.fail(badResolution, at, "exactly 1 service port required for unix endpoints, there are %d", len(s.Ports))
	}
}

func (c *checker) dnsEndpoints(at path, s *networking.ServiceEntry) {
	if len(s.Endpoints) == 0 && s.WorkloadSelector == nil {
		for i, host := range s.Hosts {
			if strings.HasPrefix(host, "*") {
				c.fail(badResolution, at.field("hosts").index(i), "hosts must be FQDN if no endpoints are provided "+
					"for resolution mode %s: %s cannot be looked up", s.Resolution, quote(host)).
					hint("give endpoints, name hosts, or write resolution: NONE")
			}
		}
	}
	for i, e := range s.Endpoints {
		here := at.field("endpoints").index(i).field("address")
		address := e.GetAddress()
		if address == "" && e.GetNetwork() != "" || isIP(address) {
			continue
		}
		if hostFault(address, false) != "" {
			c.fail(badResolution, here, "endpoint address %s is not a valid FQDN or an IP address",
				quote(address)).hint("DNS resolves whole names; for sockets, write resolution: STATIC")
		}
	}
}

// endpointPorts checks that endpoints name ports of the service.
func (c *checker) endpointPorts(at path, s *networking.ServiceEntry) {
	for i, e := range s.Endpoints {
		for _, name := range sorted(e.GetPorts()) {
			here := at.index(i).field("ports").key(name)
			if !slices.ContainsFunc(s.Ports, func(p *networking.ServicePort) bool { return p.GetName() == name }) {
				c.fail(badEndpoint, here, "endpoint port %s is not defined by the service entry", quote(name)).hint("use a name of spec.ports")
			}
			c.port(here, e.Ports[name])
		}
	}
}
