package ingress

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Address is where Ingresses are reached: one of both is set.
// Source: k8s.io/api/networking/v1, IngressLoadBalancerIngress.
type Address struct {
	IP       string `json:"ip,omitempty"`
	Hostname string `json:"hostname,omitempty"`
}

// Addresses are those at which the service before gateways is reached from outside its cluster,
// sorted as istiod does; none where there is no service.
func Addresses(s *pb.Service, cluster string) []Address {
	if s == nil {
		return nil
	}
	var out []Address
	for text := range strings.SplitSeq(s.ExternalAddresses[cluster], ",") {
		if text == "" {
			continue
		}
		a := Address{Hostname: text}
		if _, err := netip.ParseAddr(text); err == nil {
			a = Address{IP: text}
		}
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b Address) int {
		return cmp.Or(strings.Compare(a.Hostname, b.Hostname), strings.Compare(a.IP, b.IP))
	})
	return out
}
