package listeners

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/listener"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// shape is all of a listener but the proxy.
type shape struct {
	// More addresses, joined.
	More   string
	Dialed bool
	// HTTP: there is a chain for requests; Sniffed: it takes only what looks like them.
	HTTP, Sniffed bool
	Protocol      config.Protocol
	Route         string
	Chains        []listener.Chain
	// Lookups are wildcards under which hosts of requests are looked up.
	Lookups []string
	// kept is what later ports have to fit to.
	kept kept
}

// kept is what a listener's connections are so far.
type kept int

const (
	nothing kept = iota
	requests
	connections
	// mixed: requests and connections are told apart by looking at them.
	mixed
)

func sameShape(a, b shape) bool {
	return a.More == b.More && a.Dialed == b.Dialed && a.HTTP == b.HTTP && a.Sniffed == b.Sniffed && a.Protocol == b.Protocol &&
		a.Route == b.Route && slices.Equal(a.Chains, b.Chains) && slices.Equal(a.Lookups, b.Lookups)
}

// shapeOf is the listener that services make together. Listeners that a Sidecar names by their port
// are made from its services alone. Otherwise the oldest service says what the listener is (of
// those that are the namespace's own, if there are some, or else were given to it by name), and
// those that don't fit are left out: their connections could not be told apart.
func shapeOf(_ *incr.Ctx, at place, members []incr.Item[arrival, caller]) (shape, error) {
	members = slices.Clone(members)
	slices.SortStableFunc(members, func(a, b incr.Item[arrival, caller]) int {
		return cmp.Or(scope.CompareBool(b.Value.given, a.Value.given), cmp.Compare(a.Value.reach, b.Value.reach),
			config.Older(a.Value.service, b.Value.service), cmp.Compare(a.Key.Port, b.Key.Port))
	})
	var out shape
	for _, m := range members {
		if m.Value.given || !members[0].Value.given {
			out.add(at.Bind, m.Key, m.Value)
		}
	}
	for _, m := range members {
		if out.HTTP && m.Value.protocol.IsHTTP() && cluster.IsDynamic(m.Value.service) {
			out.Lookups = append(out.Lookups, m.Key.Host)
		}
	}
	slices.Sort(out.Lookups)
	out.Lookups = slices.Compact(out.Lookups)
	return out, nil
}

// add adds a port as istiod does: requests and connections at one place are told apart by looking,
// but not where a server of the protocol speaks first.
func (s *shape) add(b listener.Bind, a arrival, c caller) {
	http, tcp := c.protocol.IsHTTP(), c.protocol.IsTCP()
	switch {
	case c.forwards:
		*s = shape{More: c.more, Dialed: c.dialed, kept: requests}
		s.addRequests(b, a, c, false)
	case s.kept == nothing:
		s.More, s.Dialed = c.more, c.dialed
		s.begin(b, a, c)
	case (http || !tcp) && s.kept == mixed, http && s.kept == requests:
		return
	case !fitsServers(s, c.protocol):
		return
	case !http && !tcp && s.kept == requests:
		*s = shape{More: c.more, Dialed: c.dialed}
		s.begin(b, a, c)
	case http:
		s.addRequests(b, a, c, a.everywhere())
		s.kept = mixed
	case !tcp:
		s.addRequests(b, a, c, true)
		s.joinAll(c)
		s.kept = mixed
	default:
		s.joinAll(c)
		if s.kept == requests {
			s.kept = mixed
		}
	}
}

// begin makes the listener one for a port.
func (s *shape) begin(b listener.Bind, a arrival, c caller) {
	switch {
	case c.protocol.IsHTTP():
		s.kept = requests
		if a.everywhere() {
			s.kept = mixed
		}
		s.addRequests(b, a, c, a.everywhere())
	case c.protocol.IsTCP():
		s.kept = connections
		s.joinAll(c)
	default:
		s.kept = mixed
		s.addRequests(b, a, c, true)
		s.joinAll(c)
	}
}

// addRequests adds the chain for requests.
func (s *shape) addRequests(b listener.Bind, a arrival, c caller, sniffed bool) {
	if !s.HTTP {
		s.HTTP, s.Sniffed, s.Protocol, s.Route = true, sniffed, c.protocol, routeName(b, a, c.protocol)
	}
}

func (s *shape) joinAll(c caller) {
	s.join(c.chain)
	for _, f := range c.further {
		s.join(f)
	}
}

// join adds a chain for connections where none asks for the same, if Envoy would take it: of one
// chain that it doesn't it would refuse those of all others, too.
func (s *shape) join(c listener.Chain) {
	if c.All() && s.HTTP && !s.Sniffed {
		return
	}
	if c.Fits() && !slices.ContainsFunc(s.Chains, c.Overlaps) {
		s.Chains = append(s.Chains, c)
	}
}

// fitsServers reports whether a protocol can join: where servers speak first nothing can be told by
// looking at what clients send.
func fitsServers(s *shape, incoming config.Protocol) bool {
	first := func(p config.Protocol) bool { return p == config.Mongo || p == config.MySQL }
	if !first(incoming) && !slices.ContainsFunc(s.Chains, func(c listener.Chain) bool { return first(c.Protocol) }) {
		return true
	}
	return s.kept == connections && !slices.ContainsFunc(s.Chains, func(c listener.Chain) bool { return c.Protocol != incoming })
}

// routeName is the port's number, or HOST:PORT where the listener is one service's own and speaks
// what it likes. That of a Unix socket is its path.
func routeName(b listener.Bind, a arrival, protocol config.Protocol) string {
	switch {
	case b.Port == 0:
		return b.Address
	case protocol == config.Sniffed && !a.everywhere():
		return route.HostName(a.Host, a.Port)
	}
	return strconv.FormatUint(uint64(b.Port), 10)
}
