package status

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

// Reach is where a Gateway can be reached.
type Reach struct {
	// Internal are HOST:PORT of its services that have workloads for its ports.
	Internal []string
	// InternalAddresses are the addresses of these services in the cluster, External those outside.
	InternalAddresses, External []string
	// Pending are hosts of services that wait for an address outside.
	Pending []string
	// Warnings are why it can't be reached at some of its services. Unusable: no waiting helps.
	Warnings []string
	Unusable bool
	// Prefers is which addresses are told where there is none outside: Hostname, IPAddress, or both
	// where it is empty.
	Prefers gateway.AddressType
}

// Programmed is the condition of that name, of what is to be reached by services.
func (r Reach) Programmed(services []string) metav1.Condition {
	c := conditions{}
	r.programmed(c, services)
	return c[string(gateway.GatewayConditionProgrammed)]
}

// Addresses are those outside, or else those in the cluster.
func (r Reach) Addresses() []gateway.GatewayStatusAddress { return r.addresses() }

// programmed sets the condition Programmed.
func (r Reach) programmed(c conditions, services []string) {
	message, problem := "Resource programmed", (*Problem)(nil)
	if len(r.Internal) > 0 {
		message = "Resource programmed, assigned to service(s) " + join(r.Internal)
	}
	switch {
	case len(services) == 0:
		problem = &Problem{string(gateway.GatewayReasonUnsupportedAddress), "Failed to assign to any requested addresses"}
	case len(r.Warnings) > 0:
		problem = &Problem{string(gateway.GatewayReasonAddressNotAssigned), "Failed to assign to any requested addresses: " + strings.Join(r.Warnings, "; ")}
		if len(r.Internal) > 0 {
			problem.Message = fmt.Sprintf("Assigned to service(s) %s, but failed to assign to all requested addresses: %s",
				join(r.Internal), strings.Join(r.Warnings, "; "))
		}
		if r.Unusable {
			problem.Reason = string(gateway.GatewayReasonAddressNotUsable)
		}
	}
	c.set(string(gateway.GatewayConditionProgrammed), string(gateway.GatewayReasonProgrammed), message, problem)
}

// join writes a list as people do.
func join(list []string) string {
	switch n := len(list); n {
	case 0, 1:
		return strings.Join(list, "")
	case 2:
		return list[0] + " and " + list[1]
	default:
		return strings.Join(list[:n-1], ", ") + ", and " + list[n-1]
	}
}

// addresses are those outside, or else those in the cluster.
func (r Reach) addresses() []gateway.GatewayStatusAddress {
	list := slices.Clone(r.External)
	if len(list) == 0 {
		if r.Prefers != gateway.HostnameAddressType {
			list = append(list, r.InternalAddresses...)
		}
		if r.Prefers != gateway.IPAddressType {
			for _, at := range r.Internal {
				host, _, err := net.SplitHostPort(at)
				if err == nil && !slices.Contains(r.Pending, host) && !slices.Contains(list, host) {
					list = append(list, host)
				}
			}
		}
	}
	var out []gateway.GatewayStatusAddress
	for _, value := range list {
		kind := gateway.HostnameAddressType
		if _, err := netip.ParseAddr(value); err == nil {
			kind = gateway.IPAddressType
		}
		out = append(out, gateway.GatewayStatusAddress{Type: &kind, Value: value})
	}
	return out
}
