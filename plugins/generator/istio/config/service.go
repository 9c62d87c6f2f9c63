// Package config reads rows into what the generator works with: services, and Istio's resources
// with their host names resolved. Everything in it is read only once made.
package config

import (
	"fmt"
	"slices"
	"strings"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Wildcard addresses, for services without one of their own.
const unspecified = "0.0.0.0"

// Service is a row of the table `services`.
type Service struct {
	pb.Service
	// Key is the row's: NAMESPACE/HOST.
	Key     string
	Created int64
	// Undated: Created is when the row that it was made from was first seen.
	Undated bool
	// Row is what it was read from: equal for services that are one row's.
	Row *pb.Row
}

// ParseService reads a row.
func ParseService(row *pb.Row) (*Service, error) {
	s := &Service{Key: row.Key, Created: row.Created, Undated: row.Undated, Row: row}
	if err := s.Unmarshal(row.Payload); err != nil {
		return nil, fmt.Errorf("service %s: %w", row.Key, err)
	}
	return s, nil
}

// Port returns a service's port by number, nil where it has none.
func (s *Service) Port(number uint32) *pb.Port {
	var datagrams *pb.Port
	for _, p := range s.Ports {
		switch {
		case p.Number != number:
		case p.Protocol != "UDP":
			return p
		case datagrams == nil:
			datagrams = p
		}
	}
	return datagrams
}

// Datagrams returns a service's port for UDP by number, nil where it has none.
func (s *Service) Datagrams(number uint32) *pb.Port {
	for _, p := range s.Ports {
		if p.Number == number && ParseProtocol(p.Protocol) == UDP {
			return p
		}
	}
	return nil
}

// Address is what a client dials, 0.0.0.0 where any.
func (s *Service) Address() string {
	for _, list := range [][]string{s.Addresses, s.AutoAddresses} {
		for _, a := range list {
			if a != "" {
				return a
			}
		}
	}
	return unspecified
}

// Older orders services as Istio does where two compete: by age, then by host and namespace.
func Older(a, b *Service) int {
	if a.Created != b.Created {
		if a.Created < b.Created {
			return -1
		}
		return 1
	}
	if c := strings.Compare(a.Host, b.Host); c != 0 {
		return c
	}
	return strings.Compare(a.Namespace, b.Namespace)
}

// With returns the service with other ports.
func (s *Service) With(ports []*pb.Port) *Service {
	out := *s
	out.Ports = ports
	return &out
}

// Plus returns the service with the ports among these that it lacks, too.
func (s *Service) Plus(ports []*pb.Port) *Service {
	all := slices.Clone(s.Ports)
	for _, p := range ports {
		if s.Port(p.Number) == nil {
			all = append(all, p)
		}
	}
	if len(all) == len(s.Ports) {
		return s
	}
	return s.With(all)
}
