package gateway

import (
	"fmt"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
)

// Place is where servers that are treated alike listen.
type Place struct {
	Port     uint32
	Protocol string
	// Bind is an address that the servers name; empty for all.
	Bind string
	// Datagrams: they come there, not connections.
	Datagrams bool
}

// Group is the servers at a place, in the order in which they were found.
type Group struct {
	Place
	Servers []Server
}

// Merge decides which servers there are, of those given in order of age: the first without TLS at a
// port says what else may come there.
//
//   - plain HTTP joins plain HTTP;
//   - servers with TLS join others with TLS, if they have other hosts and, where requests are read, other names of ports;
//   - the first without TLS joins those with TLS: it has what names none of their hosts;
//   - everything joins at another address;
//   - a port for datagrams is another one than that for connections.
//
// What doesn't fit is left out: connections to one port could not be told apart. Where it is not
// known which of two Gateways was there first, both are. contests say what one keeps from the
// other, or would.
func Merge(servers []Server) (groups []Group, contests []config.Contest) {
	m := merging{ports: map[portKey]*port{}, routes: map[string]bool{}, refused: map[*networking.Server]bool{}}
	for _, s := range servers {
		m.add(s)
	}
	for _, g := range m.groups {
		g.Servers = slices.DeleteFunc(g.Servers, func(s Server) bool { return m.refused[s.Spec] })
		if len(g.Servers) > 0 {
			groups = append(groups, g)
		}
	}
	return groups, m.contests
}

type merging struct {
	groups []Group
	ports  map[portKey]*port
	// refused are servers that are in a group and don't count: it is not known whether they were
	// there before others.
	refused  map[*networking.Server]bool
	contests []config.Contest
	// routes are the names of route configurations in use.
	routes map[string]bool
}

// portKey is a port of the proxy, for datagrams or for connections.
type portKey struct {
	number    uint32
	datagrams bool
}

// port is what is known of one that servers listen at.
type port struct {
	// plain is the place of the first server without TLS.
	plain *Place
	// names that servers with TLS have, in lower case, with who has them.
	names map[string]Server
}

func (m *merging) add(s Server) {
	key := portKey{s.Port, s.Datagrams()}
	p := m.ports[key]
	if p == nil {
		p = &port{names: map[string]Server{}}
		m.ports[key] = p
	}
	at := Place{Port: s.Port, Protocol: s.Spec.Port.Protocol, Bind: s.Spec.Bind, Datagrams: s.Datagrams()}
	if s.Spec.Tls != nil && !m.claim(p, s) {
		return
	}
	switch {
	case p.plain != nil:
		m.joinPlain(p, at, s)
	case !s.encrypted():
		p.plain = &at
		m.put(at, s)
	default:
		m.joinTLS(at, s)
	}
}

// claim takes a server's hosts; false where another server with TLS has one of them at the same
// address.
func (m *merging) claim(p *port, s Server) bool {
	free := true
	for _, h := range s.Hosts {
		if has, ok := p.names[strings.ToLower(h)]; ok && has.Spec.Bind == s.Spec.Bind {
			m.keeps(has, s, fmt.Sprintf("host %s at port %d", h, s.Port))
			free = false
		}
	}
	if free {
		for _, h := range s.Hosts {
			p.names[strings.ToLower(h)] = s
		}
	}
	return free
}

// keeps notes that a server keeps something from another one, which is left out: so is the first,
// if it is not known that it was there before.
func (m *merging) keeps(has, wants Server, thing string) {
	a, b := has.Gateway.Key, wants.Gateway.Key
	said := config.Contest{Table: config.Gateways, A: a, B: b, Thing: thing, Decided: true}
	if has.Gateway.Ties(wants.Gateway.Meta) {
		m.refused[has.Spec] = true
		said = config.Contest{Table: config.Gateways, A: min(a, b), B: max(a, b), Thing: thing}
	}
	if !slices.Contains(m.contests, said) {
		m.contests = append(m.contests, said)
	}
}

// keepPort notes that all servers at a port's address keep it from another one.
func (m *merging) keepPort(wants Server) {
	for _, g := range m.groups {
		for _, has := range g.Servers {
			if g.Port == wants.Port && g.Datagrams == wants.Datagrams() && has.Spec.Bind == wants.Spec.Bind {
				m.keeps(has, wants, fmt.Sprintf("port %d, for %s and for %s", wants.Port, has.Spec.Port.Protocol, wants.Spec.Port.Protocol))
			}
		}
	}
}

func (m *merging) joinPlain(p *port, at Place, s Server) {
	if at.Bind == p.plain.Bind {
		if !canJoin(config.ParseProtocol(p.plain.Protocol), s.Protocol()) || s.Route() == "" {
			m.keepPort(s)
			return
		}
		at = *p.plain
	}
	m.put(at, s)
}

func canJoin(first, next config.Protocol) bool {
	return next.IsHTTP() && (first.IsHTTP() || first == next)
}

func (m *merging) joinTLS(at Place, s Server) {
	if s.HTTP() && m.routes[s.Route()] {
		m.keeps(s, s, fmt.Sprintf("the name %q of port %d", s.Spec.Port.Name, s.Port))
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
