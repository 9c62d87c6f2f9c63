package cluster

import (
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Names that every proxy knows.
const (
	BlackHole          = "BlackHoleCluster"
	Passthrough        = "PassthroughCluster"
	InboundPassthrough = "InboundPassthroughCluster"
)

// Name is the name of an outbound cluster.
type Name struct {
	Port   uint32
	Subset string
	Host   string
	// ByName: the cluster behind a gateway that passes TLS on by its server name, and has that
	// name.
	ByName bool
	// Datagrams: the cluster is that of the port for UDP, which may have the number of another one.
	Datagrams bool
}

// What stands before the parts of a name.
const (
	connections = "outbound"
	datagrams   = "outbound_udp"
)

// unknown is the cluster of destinations without a host: a backend that a route of the Gateway API
// may not lead to, or that is not there. No proxy has it.
const unknown = "UnknownService"

// String writes it as Istio does: outbound|PORT|SUBSET|HOST. Istio has none for datagrams; they
// have outbound_udp|PORT|SUBSET|HOST.
func (n Name) String() string {
	if n.Host == "" {
		return unknown
	}
	if n.ByName {
		return n.SNI()
	}
	kind := connections
	if n.Datagrams {
		kind = datagrams
	}
	return kind + "|" + strconv.FormatUint(uint64(n.Port), 10) + "|" + n.Subset + "|" + n.Host
}

// PortOf is the port of a service that the cluster is for; nil: it has none.
func (n Name) PortOf(s *config.Service) *pb.Port {
	if n.Datagrams {
		return s.Datagrams(n.Port)
	}
	return s.Port(n.Port)
}

// SNI is the server name that proxies of the mesh use for it: outbound_.PORT_.SUBSET_.HOST.
func (n Name) SNI() string {
	return "outbound_." + strconv.FormatUint(uint64(n.Port), 10) + "_." + n.Subset + "_." + n.Host
}

// ParseName reads an outbound cluster's name; false where it is none.
func ParseName(s string) (Name, bool) {
	parts := strings.Split(s, "|")
	byName := strings.HasPrefix(s, "outbound_.")
	if byName {
		parts = strings.SplitN(strings.TrimPrefix(s, "outbound_."), "_.", 3)
		parts = append([]string{connections}, parts...)
	}
	if len(parts) != 4 || parts[0] != connections && parts[0] != datagrams {
		return Name{}, false
	}
	port, err := strconv.ParseUint(parts[1], 10, 16)
	if err != nil {
		return Name{}, false
	}
	return Name{Port: uint32(port), Subset: parts[2], Host: parts[3], ByName: byName, Datagrams: parts[0] == datagrams}, true
}

// InboundName is the name of the cluster behind a workload's port: inbound|PORT||.
func InboundName(port uint32) string {
	return "inbound|" + strconv.FormatUint(uint64(port), 10) + "||"
}

// stat is an alternative name for statistics: the delimiter keeps Istio's tag rules from reading
// on.
func stat(name string) string { return name + ";" }
