package config

import "github.com/coxswain-mesh/coxswain/plugins/internal/dialing"

// Families are the address families that a proxy has, Dialing is how its workload dials services.
type (
	Families = dialing.Families
	Dialing  = dialing.Dialing
)

// Families and registries, by dialing's names.
const (
	IPv4       = dialing.IPv4
	IPv6       = dialing.IPv6
	Both       = dialing.Both
	Dual       = dialing.Dual
	Kubernetes = dialing.Kubernetes
	External   = dialing.External
)

// FamiliesOf are those of a proxy with these addresses; dual says that the mesh is dual stack.
func FamiliesOf(addresses []string, dual bool) Families { return dialing.FamiliesOf(addresses, dual) }

// AddressesFor are the addresses (IPs or CIDRs) by which a client dials the service; 0.0.0.0 alone
// where any.
func (s *Service) AddressesFor(d Dialing) []string { return dialing.Addresses(&s.Service, d) }

// OneListener reports whether all addresses of the service are dialled through one listener;
// otherwise each has its own.
func (s *Service) OneListener() bool { return s.Registry == Kubernetes || len(s.Addresses) == 0 }
