package consul

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
)

// served is a port of an instance.
type served struct {
	// port is the service's; its name is Consul's (1.22), empty for an instance's only one. at is
	// its number at the instance.
	port instances.Port
	at   uint32
}

// ports are those that an instance has: Consul's named ones, or its one.
func (c *Config) ports(e *entry, override int, lost func(instances.Reason, string)) (all []served) {
	of := func(p port, only bool) {
		if p.Port < 1 || p.Port > 65535 {
			lost(lostPort, e.id())
			return
		}
		s := served{instances.Port{Number: uint32(p.Port), Name: p.Name, Protocol: c.protocol(e, p.Name)}, uint32(p.Port)}
		if only || p.Default {
			s.port.Number = c.servicePort(e, s.at, lost)
		}
		all = append(all, s)
	}
	switch {
	case override != 0:
		of(port{Port: override}, true)
	case len(e.Service.Ports) > 0:
		for _, p := range e.Service.Ports {
			of(p, false)
		}
	case e.Service.Port == 0 && e.Service.SocketPath != "":
		lost(lostSocket, e.id())
	default:
		of(port{Port: e.Service.Port}, true)
	}
	return all
}

// servicePort is the number that an instance's port has in the mesh: what its metadata says, or the
// config, or its own.
func (c *Config) servicePort(e *entry, at uint32, lost func(instances.Reason, string)) uint32 {
	if text := e.Service.Meta[c.Meta.Port]; text != "" && c.Meta.Port != "" {
		if n, err := strconv.ParseUint(text, 10, 16); err == nil && n > 0 {
			return uint32(n)
		}
		lost(lostPortMeta, e.id())
	}
	return cmp.Or(c.ServicePort, at)
}

// protocol is what an instance speaks at a port: what its metadata says (protocol-NAME for a named
// port, then protocol), a tag protocol|NAME or protocol=NAME, a tag that is a protocol's name, the
// beginning of the port's name, or the config.
func (c *Config) protocol(e *entry, portName string) string {
	key := c.Meta.Protocol
	said := []string{e.Service.Meta[key+"-"+portName], e.Service.Meta[key]}
	if portName == "" {
		said = said[1:]
	}
	for _, tag := range e.Service.Tags {
		if k, v, ok := pair(tag); ok && k == key {
			said = append(said, v)
		}
	}
	for _, tag := range e.Service.Tags {
		if slices.Contains(protocolTags, tag) {
			said = append(said, tag)
		}
	}
	begin, _, _ := strings.Cut(portName, "-")
	for _, s := range append(said, begin) {
		if p := hosts.Protocol(s); p != "" {
			return p
		}
	}
	return c.Protocol
}

// protocolTags are tags that by themselves say a protocol. Names of programs, such as redis, are
// not among them: who tags an instance so may mean the program alone.
var protocolTags = []string{"http", "http2", "https", "grpc", "grpc-web", "tcp", "tls", "udp"}
