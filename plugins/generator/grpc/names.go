package grpc

import (
	"net"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// inboundPrefix begins the names of listeners that servers ask for, as Istio's agent has them in
// bootstraps (server_listener_resource_name_template).
const inboundPrefix = "xds.istio.io/grpc/lds/inbound/"

// inbound returns the address of a server's listener.
func inbound(name string) (address string, ok bool) { return strings.CutPrefix(name, inboundPrefix) }

// subset names a cluster, and its routes and endpoints, as Istio does: outbound|PORT|SUBSET|HOST.
type subset struct {
	port         uint32
	subset, host string
}

func (s subset) String() string {
	return "outbound|" + strconv.FormatUint(uint64(s.port), 10) + "|" + s.subset + "|" + s.host
}

func subsetOf(s *pb.Service, p *pb.Port, name string) subset { return subset{p.Number, name, s.Host} }

func parseSubset(name string) (subset, bool) {
	parts := strings.Split(name, "|")
	if len(parts) != 4 || parts[0] != "outbound" {
		return subset{}, false
	}
	n, err := strconv.ParseUint(parts[1], 10, 16)
	return subset{uint32(n), parts[2], parts[3]}, err == nil
}

// target returns the service and the port that a client's target names: HOST:PORT, or HOST alone
// where the service has one port.
func (c *catalog) target(v view, name string) (*pb.Service, *pb.Port, bool) {
	host, text, err := net.SplitHostPort(name)
	if err != nil {
		host, text = name, ""
	}
	s := c.find(v, host)
	if s == nil {
		return nil, nil, false
	}
	if text == "" {
		if len(s.Ports) != 1 {
			return nil, nil, false
		}
		return s, s.Ports[0], true
	}
	n, err := strconv.ParseUint(text, 10, 16)
	p := port(s, uint32(n))
	return s, p, err == nil && p != nil
}

// find returns the service that a client means by a host, which may be short: NAME, NAME.NAMESPACE
// or NAME.NAMESPACE.svc.
func (c *catalog) find(v view, host string) *pb.Service {
	forms := []string{host}
	switch parts := strings.Split(host, "."); {
	case len(parts) == 1:
		forms = append(forms, host+"."+v.Namespace+".svc."+c.domain)
	case len(parts) == 2:
		forms = append(forms, host+".svc."+c.domain)
	case len(parts) == 3 && parts[2] == "svc":
		forms = append(forms, host+"."+c.domain)
	}
	for _, f := range forms {
		if s := c.service(v, f); s != nil {
			return s
		}
	}
	return nil
}

func port(s *pb.Service, number uint32) *pb.Port {
	for _, p := range s.Ports {
		if p.Number == number {
			return p
		}
	}
	return nil
}

// namespaceOf is the namespace in an id of Istio's form, TYPE~ADDRESS~NAME.NAMESPACE~DOMAIN;
// default in others.
func namespaceOf(id string) string {
	if n, ok := istio.ParseNodeID(id); ok && n.Namespace != "" {
		return n.Namespace
	}
	return "default"
}
