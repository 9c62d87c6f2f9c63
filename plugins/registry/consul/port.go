package consul

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// served is a port of an instance.
type served struct {
	// service is the port's number in the mesh, at its number at the instance.
	service, at uint32
	// name is Consul's (1.22), empty for an instance's only one.
	name     string
	protocol string
}

// ports are those that an instance has: Consul's named ones, or its one.
func (c *Config) ports(e *entry, override int, lost func(reason, string)) (all []served) {
	of := func(p port, only bool) {
		if p.Port < 1 || p.Port > 65535 {
			lost(lostPort, e.id())
			return
		}
		s := served{service: uint32(p.Port), at: uint32(p.Port), name: p.Name, protocol: c.protocol(e, p.Name)}
		if only || p.Default {
			s.service = c.servicePort(e, s.at, lost)
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

// servicePort is the number that an instance's port has in the mesh: what its metadata says, or the config, or its own.
func (c *Config) servicePort(e *entry, at uint32, lost func(reason, string)) uint32 {
	if text := e.Service.Meta[c.Meta.Port]; text != "" && c.Meta.Port != "" {
		if n, err := strconv.ParseUint(text, 10, 16); err == nil && n > 0 {
			return uint32(n)
		}
		lost(lostPortMeta, e.id())
	}
	return cmp.Or(c.ServicePort, at)
}

// protocol is what an instance speaks at a port: what its metadata says (protocol-NAME for a named port, then
// protocol), a tag protocol|NAME or protocol=NAME, a tag that is a protocol's name, the beginning of the port's name,
// or the config.
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

// protocolTags are tags that by themselves say a protocol. Names of programs, such as redis, are not among them: who
// tags an instance so may mean the program alone.
var protocolTags = []string{"http", "http2", "https", "grpc", "grpc-web", "tcp", "tls", "udp"}

// servicePortsMost is how many ports a service may have.
const servicePortsMost = 64

// servicePorts are the ports of a service: all that its instances have, by number, at most servicePortsMost. Where
// instances differ in what they speak at a port, most of them are right; lost is called for each of the others, and for
// each that has a port which is one too many.
func servicePorts(all []member, lost func(reason, string)) []*sdk.Port {
	votes := map[uint32]map[served]int{}
	for _, m := range all {
		if votes[m.port.service] == nil {
			votes[m.port.service] = map[served]int{}
		}
		votes[m.port.service][served{name: m.port.name, protocol: m.port.protocol}]++
	}
	numbers := make([]uint32, 0, len(votes))
	for n := range votes {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	if more := len(numbers) - servicePortsMost; more > 0 {
		for _, n := range numbers[servicePortsMost:] {
			lost(lostPorts, strconv.Itoa(int(n)))
		}
		numbers = numbers[:servicePortsMost]
	}
	taken := map[string]bool{}
	out := make([]*sdk.Port, len(numbers))
	for i, n := range numbers {
		best, most := elect(votes[n])
		if sum(votes[n]) > most {
			lost(lostProtocol, strconv.Itoa(int(n)))
		}
		name := best.name
		if name == "" {
			name = strings.ToLower(cmp.Or(best.protocol, "auto")) + "-" + strconv.Itoa(int(n))
		}
		if taken[name] {
			name += "-" + strconv.Itoa(int(n))
		}
		taken[name] = true
		out[i] = &sdk.Port{Number: n, Name: name, Protocol: best.protocol}
	}
	return out
}

func elect(votes map[served]int) (best served, most int) {
	for s, n := range votes {
		if n > most || n == most && (s.protocol < best.protocol || s.protocol == best.protocol && s.name < best.name) {
			best, most = s, n
		}
	}
	return best, most
}

func sum(votes map[served]int) (n int) {
	for _, v := range votes {
		n += v
	}
	return n
}
