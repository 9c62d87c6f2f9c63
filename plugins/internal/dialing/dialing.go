// Package dialing is how clients dial services: by which of their addresses, by what address
// families they and their clients have, and by the cluster that the client is in.
package dialing

import (
	"net/netip"
	"slices"
	"strings"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Families are the address families that a proxy has.
type Families uint8

// Families of proxies. Both means both without dual stack: listeners that intercept stand in IPv4
// alone, services have the addresses of one family. Dual is both with all that follows.
const (
	IPv4 Families = iota
	IPv6
	Both
	Dual
)

// FamiliesOf are those of a proxy with these addresses; dual says that the mesh is dual stack.
func FamiliesOf(addresses []string, dual bool) Families {
	four, six := false, false
	for _, a := range addresses {
		ip, err := netip.ParseAddr(a)
		four = four || err == nil && ip.Unmap().Is4()
		six = six || err == nil && ip.Unmap().Is6()
	}
	switch {
	case four && six && dual:
		return Dual
	case four && six:
		return Both
	case six:
		return IPv6
	}
	return IPv4
}

// String names the families.
func (f Families) String() string {
	switch f {
	case IPv4:
		return "IPv4"
	case IPv6:
		return "IPv6"
	case Both:
		return "both"
	}
	return "dual stack"
}

// Any are the addresses that stand for all, the primary first.
func (f Families) Any() []string { return f.pick("0.0.0.0", "::") }

// Loopback are the addresses of the host itself, the primary first.
func (f Families) Loopback() []string { return f.pick("127.0.0.1", "::1") }

// Source are the addresses from which a sidecar dials its own workload, so that interception leaves
// it alone.
func (f Families) Source() []string { return f.pick("127.0.0.6", "::6") }

// Behind is Source for the ports of the workload that are known: those of both families are dialed
// from one address, unless the mesh is dual stack.
func (f Families) Behind() []string {
	if f == Both {
		return IPv4.Source()
	}
	return f.Source()
}

// Reach reports whether addresses of these families can dial one; names may have any.
func (f Families) Reach(address string) bool {
	ip, err := netip.ParseAddr(address)
	switch {
	case err != nil || f == Both || f == Dual:
		return true
	}
	return ip.Unmap().Is6() == (f == IPv6)
}

func (f Families) pick(four, six string) []string {
	switch f {
	case IPv4:
		return []string{four}
	case IPv6:
		return []string{six}
	}
	return []string{four, six}
}

// Dialing is how a proxy's workload dials services: what else than a service's own addresses
// counts.
type Dialing struct {
	Families Families
	// Resolver is where the proxy's agent answers DNS, IP:PORT, so that addresses that a control
	// plane chose are known to the workload; empty: nobody answers.
	Resolver string
	Cluster  string
}

// Addresses are those (IPs or CIDRs) by which a client dials a service; 0.0.0.0 alone where any.
func Addresses(s *pb.Service, d Dialing) []string {
	own := d.Families.filter(list(s.ClusterAddresses[d.Cluster]))
	switch {
	case len(own) > 0:
		return own
	case s.Registry == Kubernetes && len(s.Addresses) > 0:
		if out := d.Families.filter(s.Addresses); len(out) > 0 {
			return out
		}
		return s.Addresses[:1]
	case len(s.Addresses) > 0:
		return s.Addresses
	case d.Resolver != "":
		if out := d.Families.filter(s.AutoAddresses); len(out) > 0 {
			return out
		}
	}
	return []string{unspecified}
}

// Kubernetes is the registry whose services have one address of each family. Elsewhere addresses
// are independent of each other.
const Kubernetes = "Kubernetes"

// External is the registry of services that are declared: their endpoints say themselves in which
// network they are.
const External = "External"

// unspecified is the address of services that have none of their own.
const unspecified = "0.0.0.0"

func list(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

// filter leaves the addresses that the families can dial: those of one family, the first address's
// where both would do.
func (f Families) filter(addresses []string) []string {
	if f == Dual || len(addresses) == 0 {
		return addresses
	}
	six := f == IPv6 || f == Both && isIPv6(addresses[0])
	return slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return isIPv6(a) != six })
}

func isIPv6(address string) bool { return strings.Contains(address, ":") }

// drainingLabel marks endpoints that end, whatever their registry knows of their health.
const drainingLabel = "istio.io/draining"

// Drains reports whether an endpoint gets no new work.
func Drains(e *pb.Endpoint) bool {
	return e.Health == pb.EndpointHealthDraining || e.Labels[drainingLabel] != ""
}

// Ready reports whether an endpoint takes new work: it is healthy, and doesn't drain.
func Ready(e *pb.Endpoint) bool {
	return !Drains(e) && (e.Health == pb.EndpointHealthHealthy || e.Health == pb.EndpointHealthReady)
}
