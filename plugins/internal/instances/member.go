// Package instances is what plugins of registries share that list instances: members of services become rows of services and endpoints, what
// can't be mapped is counted with a reason, and only what differs is published.
//
//	book := instances.New(instances.Naming{Source: "eureka", Registry: "Eureka", Namespace: "default", Host: host, Reasons: reasons})
//	book.Set("web", "web/10.0.0.1", members, lost) // all that this instance is in the service web
//	err := book.Publish(out)                       // what changed since
//
// It has no clock and starts nothing; one goroutine uses it.
package instances

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Member is an instance at one of its ports: all but what depends on other instances of its service.
type Member struct {
	// Of names the instance, for people.
	Of   string
	Port Port
	// Endpoint's Host, Namespace, PortName and ServicePort are filled in.
	Endpoint sdk.Endpoint
	External bool
}

// Port is one of a service: its number, the name that the registry has for it (or none), and what is spoken there; empty: each proxy finds out.
type Port struct {
	Number   uint32
	Name     string
	Protocol string
}

// MostPorts is how many ports a service may have.
const MostPorts = 64

// assemble makes a service and its endpoints of all its members; nil where there are none.
func (n *Naming) assemble(name string, all []Member, lost Tally) (*sdk.Service, []*sdk.Endpoint) {
	host := n.Host(name)
	if len(all) == 0 {
		return nil, nil
	}
	if !hosts.ValidName(host, false) {
		lost.Add(Host, name)
		return nil, nil
	}
	all = distinct(all, lost)
	s := &sdk.Service{
		Host: host, Namespace: n.Namespace, Name: name, Registry: n.Registry, Ports: ports(all, lost),
		External: slices.ContainsFunc(all, func(m Member) bool { return m.External }),
	}
	if !slices.ContainsFunc(all, func(m Member) bool { return hosts.IsIP(m.Endpoint.Address) }) {
		s.Resolution = pb.ServiceResolutionDns
	}
	endpoints := make([]*sdk.Endpoint, 0, len(all))
	for _, m := range all {
		if s.Resolution == pb.ServiceResolutionStatic && !hosts.IsIP(m.Endpoint.Address) {
			lost.Add(Name, m.Endpoint.Address)
			continue
		}
		at := slices.IndexFunc(s.Ports, func(p *sdk.Port) bool { return p.Number == m.Port.Number })
		if at < 0 {
			continue // counted as a port too many
		}
		e := m.Endpoint
		e.Host, e.Namespace, e.PortName, e.ServicePort = host, n.Namespace, s.Ports[at].Name, m.Port.Number
		endpoints = append(endpoints, &e)
	}
	return s, endpoints
}

// distinct sorts members, and leaves out those that serve the same port at the same address as another one: the healthiest stays.
func distinct(all []Member, lost Tally) []Member {
	slices.SortFunc(all, func(a, b Member) int {
		return cmp.Or(strings.Compare(a.Endpoint.Address, b.Endpoint.Address), cmp.Compare(a.Port.Number, b.Port.Number), cmp.Compare(a.Endpoint.Port, b.Endpoint.Port),
			cmp.Compare(a.Endpoint.Health, b.Endpoint.Health), strings.Compare(a.Of, b.Of))
	})
	return slices.CompactFunc(all, func(a, b Member) bool {
		same := a.Endpoint.Address == b.Endpoint.Address && a.Port.Number == b.Port.Number && a.Endpoint.Port == b.Endpoint.Port
		if same {
			lost.Add(Same, a.Of) // CompactFunc keeps b
		}
		return same
	})
}

// ports are those of a service: all that its members have, by number, at most MostPorts. Where members differ in what they speak at a port, most
// of them are right.
func ports(all []Member, lost Tally) []*sdk.Port {
	votes := map[uint32]map[Port]int{}
	for _, m := range all {
		if votes[m.Port.Number] == nil {
			votes[m.Port.Number] = map[Port]int{}
		}
		votes[m.Port.Number][m.Port]++
	}
	numbers := make([]uint32, 0, len(votes))
	for n := range votes {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for _, n := range numbers[min(len(numbers), MostPorts):] {
		lost.Add(Ports, strconv.Itoa(int(n)))
	}
	numbers = numbers[:min(len(numbers), MostPorts)]
	taken := map[string]bool{}
	out := make([]*sdk.Port, len(numbers))
	for i, n := range numbers {
		best := elect(votes[n])
		if len(votes[n]) > 1 {
			lost.Add(Protocol, strconv.Itoa(int(n)))
		}
		name := best.Name
		if name == "" {
			name = strings.ToLower(cmp.Or(best.Protocol, "auto")) + "-" + strconv.Itoa(int(n))
		}
		if taken[name] {
			name += "-" + strconv.Itoa(int(n))
		}
		taken[name] = true
		out[i] = &sdk.Port{Number: n, Name: name, Protocol: best.Protocol}
	}
	return out
}

func elect(votes map[Port]int) (best Port) {
	most := 0
	for p, n := range votes {
		if n > most || n == most && (p.Protocol < best.Protocol || p.Protocol == best.Protocol && p.Name < best.Name) {
			best, most = p, n
		}
	}
	return best
}

// IsLabel reports whether a text can be a label's key: what selectors select by.
// Source: Kubernetes, "Labels and Selectors", syntax and character set.
func IsLabel(key string) bool {
	prefix, name, ok := strings.Cut(key, "/")
	if !ok {
		prefix, name = "", key
	} else if !hosts.ValidName(prefix, false) {
		return false
	}
	if name == "" || len(name) > 63 {
		return false
	}
	for i, c := range []byte(name) {
		alphanumeric := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		inside := c == '-' || c == '_' || c == '.'
		if !alphanumeric && (!inside || i == 0 || i == len(name)-1) {
			return false
		}
	}
	return true
}
