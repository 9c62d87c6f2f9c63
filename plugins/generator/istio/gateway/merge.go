package gateway

import (
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
)

// Place is where servers that are treated alike listen.
type Place struct {
	Port     uint32
	Protocol string
	// Bind is an address that the servers name; empty for all.
	Bind string
}

// Group is the servers at a place, in the order in which they were found.
type Group struct {
	Place
	Servers []Server
}

// Merge decides which servers there are, of those given in order of age: the first at a port says
// what it is for.
//
//   - plain HTTP joins plain HTTP;
//   - servers with TLS join others with TLS, if they have other hosts and, where requests are read, other names of ports;
//   - everything joins at another address.
//
// What doesn't fit is left out: connections to one port could not be told apart.
func Merge(servers []Server) []Group {
	m := merging{ports: map[uint32]*port{}, routes: map[string]bool{}}
	for _, s := range servers {
		m.add(s)
	}
	return m.groups
}

type merging struct {
	groups []Group
	ports  map[uint32]*port
	// routes are the names of route configurations in use.
	routes map[string]bool
}

// port is what is known of one that servers listen at.
type port struct {
	// plain is the place of the first server, if it has no TLS.
	plain *Place
	// names that servers with TLS have, in lower case, with their addresses.
	names map[string]string
	// binds of servers with TLS besides the first.
	binds map[string]bool
	taken bool
}

func (m *merging) add(s Server) {
	p := m.ports[s.Port]
	if p == nil {
		p = &port{names: map[string]string{}, binds: map[string]bool{}}
		m.ports[s.Port] = p
	}
	at := Place{Port: s.Port, Protocol: s.Spec.Port.Protocol, Bind: s.Spec.Bind}
	if s.Spec.Tls != nil && !p.claim(s) {
		return
	}
	switch {
	case !p.taken:
		p.taken = true
		if !s.encrypted() {
			p.plain = &at
		}
		m.put(at, s)
	case p.plain != nil:
		m.joinPlain(p, at, s)
	default:
		m.joinTLS(p, at, s)
	}
}

// claim takes a server's hosts; false where another server with TLS has one of them at the same
// address.
func (p *port) claim(s Server) bool {
	for _, h := range s.Hosts {
		if bind, ok := p.names[strings.ToLower(h)]; ok && bind == s.Spec.Bind {
			return false
		}
	}
	for _, h := range s.Hosts {
		p.names[strings.ToLower(h)] = s.Spec.Bind
	}
	return true
}

func (m *merging) joinPlain(p *port, at Place, s Server) {
	if at.Bind == p.plain.Bind {
		if !canJoin(config.ParseProtocol(p.plain.Protocol), s.Protocol()) || s.Route() == "" {
			return
		}
		at = *p.plain
	}
	m.put(at, s)
}

func canJoin(first, next config.Protocol) bool {
	return next.IsHTTP() && (first.IsHTTP() || first == next)
}

func (m *merging) joinTLS(p *port, at Place, s Server) {
	if s.HTTP() && m.routes[s.Route()] {
		return
	}
	known := p.binds[at.Bind]
	p.binds[at.Bind] = true
	if s.Spec.Tls == nil && known {
		return
	}
	m.put(at, s)
}

func (m *merging) put(at Place, s Server) {
	if name := s.Route(); name != "" {
		m.routes[name] = true
	}
	i := slices.IndexFunc(m.groups, func(g Group) bool { return g.Place == at })
	if i < 0 {
		i = len(m.groups)
		m.groups = append(m.groups, Group{Place: at})
	}
	m.groups[i].Servers = append(m.groups[i].Servers, s)
}

// ByRoute are the servers whose requests are routed by a route configuration.
func ByRoute(groups []Group, name string) []Server {
	var out []Server
	for _, g := range groups {
		for _, s := range g.Servers {
			if s.HTTP() && s.Route() == name {
				out = append(out, s)
			}
		}
	}
	return out
}
