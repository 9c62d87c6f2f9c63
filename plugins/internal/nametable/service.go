package nametable

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/dialing"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Client is what a name table depends on of the proxy whose workload asks.
type Client struct {
	Dialing dialing.Dialing
	Network string
}

// Endpoint is a row of the table `endpoints`.
type Endpoint struct {
	*pb.Endpoint
	Key string
}

// order is the order of a service's endpoints as they were declared.
func order(a, b Endpoint) int {
	return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Key, b.Key))
}

// multiCluster ends names that mean a service of any cluster; they have no shorter forms.
const multiCluster = ".clusterset.local"

// Of are the names of a service: its host and its aliases with its addresses, and each of its
// endpoints that has a name where it has no address of its own. endpoints are asked for only then.
func Of(s *pb.Service, c Client, endpoints func() []Endpoint) []Entry {
	own := Entry{Host: s.Host, Registry: s.Registry}
	if s.Registry == Kubernetes && !strings.HasSuffix(s.Host, multiCluster) {
		own.Short, own.Namespace = s.Name, s.Namespace
	}
	var out []Entry
	addresses := dialing.Addresses(s, c.Dialing)
	switch {
	case s.Registry == Kubernetes && !c.Dialing.Families.Reach(addresses[0]):
		return nil // none of the client's family; as istiod, to which 0.0.0.0 is one of IPv4, so that who has IPv6 alone knows no headless service
	case !isUnspecified(addresses):
		own.IPs = usable(addresses)
	case (s.Headless || s.Resolution == pb.ServiceResolutionNone) && len(s.Ports) > 0:
		own.IPs, out = headless(s, c, endpoints())
	}
	if len(own.IPs) == 0 {
		return out
	}
	out = append(out, own)
	if s.Registry == Kubernetes {
		return out // its own DNS has the names of its ExternalName services
	}
	for _, a := range s.Aliases {
		out = append(out, Entry{Host: a, IPs: own.IPs, Registry: s.Registry})
	}
	return out
}

func isUnspecified(addresses []string) bool {
	a, err := netip.ParseAddr(addresses[0])
	return err == nil && a.IsUnspecified()
}

// usable are the addresses that can be answered: no ranges.
func usable(addresses []string) (out []string) {
	for _, a := range addresses {
		if _, err := netip.ParseAddr(a); err == nil {
			out = append(out, a)
		}
	}
	return out
}

// headless are the addresses of the endpoints in the client's network, of whichever cluster, and a
// name for each that has one: HOSTNAME.SUBDOMAIN and the rest of the service's host. What is behind
// another network's gateway can't be dialled.
func headless(s *pb.Service, c Client, endpoints []Endpoint) (ips []string, named []Entry) {
	_, rest, ok := strings.Cut(s.Host, ".")
	for _, e := range slices.SortedFunc(slices.Values(endpoints), order) {
		addresses := usable(append([]string{e.Address}, e.MoreAddresses...))
		if !dialing.Ready(e.Endpoint) || e.PortName != s.Ports[0].Name || len(addresses) != 1+len(e.MoreAddresses) || !near(e.Network, c.Network) {
			continue
		}
		if e.Subdomain != "" && ok {
			short := e.Hostname + "." + e.Subdomain
			named = addNamed(named, Entry{
				Host: short + "." + rest, IPs: addresses, Registry: s.Registry, Short: short, Namespace: s.Namespace,
				Far: !near(e.Cluster, c.Dialing.Cluster),
			})
		}
		ips = append(ips, addresses...)
	}
	return ips, named
}

// addNamed adds a name, or addresses to it: those of both families are a pod's, in a slice each.
func addNamed(named []Entry, e Entry) []Entry {
	i := slices.IndexFunc(named, func(n Entry) bool { return n.Host == e.Host && n.Far == e.Far })
	if i < 0 {
		return append(named, e)
	}
	named[i].IPs = slices.Concat(named[i].IPs, e.IPs)
	return named
}

// near reports whether a network or cluster is the client's; where either is unknown it counts as
// such.
func near(a, b string) bool { return a == "" || b == "" || a == b }
