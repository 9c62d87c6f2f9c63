package memory

import (
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/internal/nearest"
	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// resolutions in the order of schema.
var resolutions = map[string]pb.ServiceResolution{
	"STATIC": pb.ServiceResolutionStatic, "DNS": pb.ServiceResolutionDns,
	"DNS_ROUND_ROBIN": pb.ServiceResolutionDnsRoundRobin, "NONE": pb.ServiceResolutionNone,
}

// defaults are what counts where the config says nothing.
func defaults() Config {
	return Config{Cluster: "Kubernetes"}
}

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	seen := map[string]int{}
	for i := range c.Services {
		at, s := strict.At("services", i), &c.Services[i]
		if err := s.complete(at); err != nil {
			return err
		}
		key := sdk.ServiceKey(s.Namespace, s.Host)
		if first, ok := seen[key]; ok {
			return strict.Errorf(at+".host", "%s is there already, as %s", key, strict.At("services", first))
		}
		seen[key] = i
	}
	return nil
}

func (s *service) complete(at string) error {
	s.Namespace = or(s.Namespace, "default")
	s.Name = or(s.Name, s.Host)
	s.Resolution = or(s.Resolution, "STATIC")
	if _, ok := resolutions[s.Resolution]; !ok {
		return strict.Errorf(at+".resolution", "unknown value %q%s", s.Resolution,
			nearest.Suggest(s.Resolution, []string{"STATIC", "DNS", "DNS_ROUND_ROBIN", "NONE"}))
	}
	switch {
	case s.Host == "":
		return strict.Errorf(at+".host", "is missing")
	case !hosts.ValidName(s.Host, true):
		return strict.Errorf(at+".host", "%q is not a DNS name, nor one that begins with `*.`", s.Host)
	case strings.Contains(s.Namespace, "/"):
		return strict.Errorf(at+".namespace", "%q holds a slash", s.Namespace)
	case len(s.Ports) == 0:
		return strict.Errorf(at+".ports", "at least one port is needed")
	}
	for i, a := range s.Addresses {
		short, ok := hosts.VirtualAddress(a)
		if !ok {
			return strict.Errorf(strict.At(at+".addresses", i), "%q is neither an IP address nor a CIDR", a)
		}
		s.Addresses[i] = short
	}
	if err := s.completePorts(at + ".ports"); err != nil {
		return err
	}
	return s.checkEndpoints(at + ".endpoints")
}

func (s *service) completePorts(list string) error {
	names, numbers := map[string]bool{}, map[uint32]bool{}
	for i := range s.Ports {
		p, at := &s.Ports[i], strict.At(list, i)
		if p.Number == 0 || p.Number > 65535 {
			return strict.Errorf(at+".number", "%d is not between 1 and 65535", p.Number)
		}
		if p.TargetPort > 65535 {
			return strict.Errorf(at+".targetPort", "%d is not between 1 and 65535", p.TargetPort)
		}
		protocol := hosts.Protocol(p.Protocol)
		if protocol == "" && p.Protocol != "" {
			return strict.Errorf(at+".protocol",
				"unknown protocol %q; known are HTTP, HTTPS, HTTP2, GRPC, GRPC-WEB, TCP, TLS, MONGO, REDIS, MYSQL, UDP",
				p.Protocol)
		}
		p.Protocol = protocol
		p.Name = or(p.Name, strings.ToLower(or(protocol, "port"))+"-"+strconv.Itoa(int(p.Number)))
		if names[p.Name] {
			return strict.Errorf(at+".name", "%q is there twice", p.Name)
		}
		if numbers[p.Number] {
			return strict.Errorf(at+".number", "%d is there twice", p.Number)
		}
		names[p.Name], numbers[p.Number] = true, true
	}
	return nil
}

func (s *service) checkEndpoints(list string) error {
	for i, e := range s.Endpoints {
		at := strict.At(list, i)
		if err := s.checkAddress(at+".address", e.Address); err != nil {
			return err
		}
		if e.Port > 65535 {
			return strict.Errorf(at+".port", "%d is not between 1 and 65535", e.Port)
		}
		if e.Port > 0 && len(s.Ports) > 1 {
			return strict.Errorf(at+".port", "the service has %d ports; say `ports: {NAME: NUMBER}`", len(s.Ports))
		}
		for name, number := range e.Ports {
			if !s.hasPort(name) {
				return strict.Errorf(at+".ports."+name, "the service has no such port")
			}
			if number > 65535 {
				return strict.Errorf(at+".ports."+name, "%d is not between 1 and 65535", number)
			}
		}
	}
	return nil
}

func (s *service) checkAddress(at, address string) error {
	_, unix := hosts.Path(address)
	switch byDNS := strings.HasPrefix(s.Resolution, "DNS"); {
	case s.Resolution == "NONE":
		return strict.Errorf(at, "a service with resolution NONE has no endpoints")
	case address == "":
		return strict.Errorf(at, "is missing")
	case hosts.IsIP(address), unix && !byDNS:
		return nil
	case unix:
		return strict.Errorf(at, "Unix sockets need resolution STATIC, not %s", s.Resolution)
	case !byDNS:
		return strict.Errorf(at, "%q is no IP address, which resolution STATIC needs; resolution DNS takes names", address)
	case !hosts.ValidName(address, false):
		return strict.Errorf(at, "%q is neither an IP address nor a DNS name", address)
	}
	return nil
}

func (s *service) hasPort(name string) bool {
	for _, p := range s.Ports {
		if p.Name == name {
			return true
		}
	}
	return false
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
