// Package gateway says what the servers of the Gateways that select a proxy make together:
// listeners, and names of route configurations.
package gateway

import (
	"slices"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
)

// Server is a server of a Gateway on a proxy.
type Server struct {
	Gateway *config.Gateway
	Spec    *networking.Server
	// Port is where the proxy listens for it: a service in front may have another than the server
	// names.
	Port uint32
	// Hosts are the server's: HOST, or NAMESPACE/HOST where it is for virtual services of one
	// namespace alone.
	Hosts []string
	// UDP: the service in front passes UDP too, so that HTTP/3 can be offered.
	UDP bool
}

// ServersOf are the servers of a Gateway; port says where the proxy listens for a server's port,
// for datagrams or for connections, and whether UDP comes there too.
func ServersOf(g *config.Gateway, port func(number uint32, datagrams bool) (target uint32, udp bool)) []Server {
	var out []Server
	for _, s := range g.Spec.Servers {
		if s.GetPort() == nil {
			continue
		}
		target, udp := port(s.Port.Number, g.ForDatagrams(s))
		out = append(out, Server{Gateway: g, Spec: s, Port: target, Hosts: hosts(s.Hosts, g.Namespace), UDP: udp})
	}
	return out
}

// hosts writes ./HOST with the namespace, and */HOST without.
func hosts(list []string, namespace string) []string {
	out := make([]string, 0, len(list))
	for _, h := range list {
		prefix, name, ok := strings.Cut(h, "/")
		switch {
		case ok && prefix == "*" && name == "*":
			return []string{"*"}
		case ok && prefix == "*":
			h = name
		case ok && prefix == ".":
			h = namespace + "/" + name
		}
		out = append(out, h)
	}
	return out
}

// Protocol is what the server declares.
func (s *Server) Protocol() config.Protocol { return config.ParseProtocol(s.Spec.Port.Protocol) }

// Datagrams reports whether the server takes datagrams, not connections.
func (s *Server) Datagrams() bool { return s.Gateway.ForDatagrams(s.Spec) }

// Passes reports whether TLS goes through unopened.
func (s *Server) Passes() bool {
	m := s.Spec.GetTls().GetMode()
	return s.Spec.Tls != nil && (m == networking.ServerTLSSettings_PASSTHROUGH || m == networking.ServerTLSSettings_AUTO_PASSTHROUGH)
}

// HTTPS reports whether the proxy opens TLS and reads the requests in it.
func (s *Server) HTTPS() bool {
	return s.Protocol() == config.HTTPS && s.Spec.Tls != nil && !s.Passes()
}

// HTTP reports whether the proxy reads requests.
func (s *Server) HTTP() bool { return s.Protocol().IsHTTP() || s.HTTPS() }

// HTTP3 reports whether requests may come by HTTP/3 too.
func (s *Server) HTTP3() bool { return s.UDP && s.HTTPS() }

// encrypted reports whether clients speak TLS at this port. Plain HTTP with settings that only
// redirect does not.
func (s *Server) encrypted() bool { return s.Spec.Tls != nil && !s.Protocol().IsHTTP() }

// Automatic reports whether TLS goes on to the cluster that its server name says.
func (s *Server) Automatic() bool {
	return s.Spec.GetTls().GetMode() == networking.ServerTLSSettings_AUTO_PASSTHROUGH && s.Passes()
}

// Route is the name of the server's route configuration: http.PORT, which servers share, or
// https.PORT.NAME.GATEWAY.NAMESPACE; with the address behind it if the server names one. Empty for
// connections.
func (s *Server) Route() string {
	bind := ""
	if s.Spec.Bind != "" {
		bind = "." + s.Spec.Bind
	}
	switch {
	case s.Protocol().IsHTTP():
		return "http." + number(s.Port) + bind
	case s.Protocol() == config.HTTPS && !s.Passes():
		return strings.Join([]string{"https", number(s.Spec.Port.Number), s.Spec.Port.Name, s.Gateway.Name, s.Gateway.Namespace}, ".") + bind
	}
	return ""
}

func number(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// Names are the server names by which clients ask for the server in TLS, in order; nil without TLS.
func (s *Server) Names() []string {
	if s.Spec.Tls == nil {
		return nil
	}
	out := make([]string, 0, len(s.Hosts))
	for _, h := range s.Hosts {
		_, name, ok := strings.Cut(h, "/")
		if !ok {
			name = h
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// HostsFor are the hosts that virtual services of a namespace may have, in lower case as theirs
// are.
func (s *Server) HostsFor(namespace string) []string {
	var out []string
	for _, h := range s.Hosts {
		h = strings.ToLower(h)
		prefix, name, ok := strings.Cut(h, "/")
		switch {
		case !ok:
			out = append(out, h)
		case prefix == namespace:
			out = append(out, name)
		}
	}
	return out
}

// Has reports whether a virtual service is for a host of the server.
func (s *Server) Has(v *config.VirtualService) bool {
	mine := s.HostsFor(v.Namespace)
	return slices.ContainsFunc(v.Spec.Hosts, func(h string) bool {
		return slices.ContainsFunc(mine, func(m string) bool { return istio.Overlaps(m, h) })
	})
}
