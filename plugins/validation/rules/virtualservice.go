package rules

import (
	"math"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
)

// Codes about VirtualServices.
const (
	noRoutes       = "COX2101"
	overlapping    = "COX2102"
	badAction      = "COX2103"
	badDelegate    = "COX2104"
	badMatch       = "COX2105"
	badDestination = "COX2106"
	badSNI         = "COX2114"
	badClaimRule   = "COX2115"
)

// meshGateway is the name for all sidecars.
const meshGateway = "mesh"

// binding is where a VirtualService applies.
type binding struct {
	mesh, gateways bool
	// delegate says that others refer to it: it has no hosts of its own.
	delegate bool
	hosts    []string
}

func (c *checker) virtualService(at path, v *networking.VirtualService) {
	if proto.Size(v) == 0 { // an API server takes it
		c.warn(noRoutes, at, "it says nothing, and does nothing")
		return
	}
	b := binding{mesh: len(v.Gateways) == 0, delegate: len(v.Hosts) == 0, hosts: v.Hosts}
	for _, g := range v.Gateways {
		b.mesh = b.mesh || g == meshGateway
		b.gateways = b.gateways || g != meshGateway
	}
	if b.delegate {
		c.delegate(at, v)
	}
	c.gatewayNames(at.field("gateways"), v.Gateways)
	c.virtualHosts(at.field("hosts"), b, len(v.Tls) > 0)
	c.exportTo(at.field("exportTo"), v.ExportTo, false)
	if len(v.Http)+len(v.Tls)+len(v.Tcp) == 0 {
		c.fail(noRoutes, at, "http, tcp or tls must be provided in virtual service")
	}
	for i, r := range v.Http {
		c.httpRoute(at.field("http").index(i), r, b)
	}
	for i, r := range v.Tls {
		c.tlsRoute(at.field("tls").index(i), r, b)
	}
	for i, r := range v.Tcp {
		c.tcpRoute(at.field("tcp").index(i), r)
	}
}

// delegate checks what only a VirtualService with hosts may have.
func (c *checker) delegate(at path, v *networking.VirtualService) {
	const why = "a virtual service without hosts is for others to delegate to"
	if len(v.Gateways) > 0 {
		c.fail(badDelegate, at.field("gateways"), "delegate virtual service must have no gateways specified").hint("%s; add hosts, or remove gateways", why)
	}
	if len(v.Tls) > 0 {
		c.fail(badDelegate, at.field("tls"), "delegate virtual service must have no tls").hint("%s; add hosts, or remove tls", why)
	}
	if len(v.Tcp) > 0 {
		c.fail(badDelegate, at.field("tcp"), "delegate virtual service must have no tcp").hint("%s; add hosts, or remove tcp", why)
	}
}

// gatewayNames checks references: mesh, NAME or NAMESPACE/NAME.
func (c *checker) gatewayNames(at path, names []string) {
	for i, name := range names {
		namespace, gateway, both := strings.Cut(name, "/")
		switch {
		case both && isLabel(namespace) && isReferable(gateway):
		case both, !isReferable(name):
			c.fail(badReference, at.index(i), "invalid value for gateway: %s", quote(name)).hint("write NAME or NAMESPACE/NAME, without wildcards")
		case strings.Contains(name, "."):
			c.warn(badReference, at.index(i), "using legacy gatewayName format %s", quote(name)).hint("prefer the NAMESPACE/NAME format")
		}
	}
}

func isReferable(name string) bool { return hostFault(name, false) == "" }

// virtualHosts checks hosts, and that none of them covers another.
func (c *checker) virtualHosts(at path, b binding, sni bool) {
	right := true
	for i, host := range b.hosts {
		right = c.virtualHost(at.index(i), host, b, sni) && right
	}
	for i := 0; right && i < len(b.hosts); i++ {
		for j := i + 1; j < len(b.hosts); j++ {
			if istio.OverlapsFold(b.hosts[i], b.hosts[j]) {
				c.fail(overlapping, at.index(j), "duplicate hosts in virtual service: %s & %s", quote(b.hosts[i]), quote(b.hosts[j])).
					hint("a host must not cover another of the same virtual service; remove one, or part them")
			}
		}
	}
}

func (c *checker) virtualHost(at path, host string, b binding, sni bool) bool {
	switch {
	case host == "*" && b.mesh:
		c.fail(badWildcard, at, "wildcard host * is not allowed for virtual services bound to the mesh gateway").hint("name gateways, or hosts")
		return false
	case isIP(host), sni && b.gateways && isClusterSNI(host):
		return true
	}
	return c.host(at, host)
}

// isClusterSNI reports whether a name is what sidecars send as SNI: outbound_.PORT_.SUBSET_.HOST.
func isClusterSNI(name string) bool {
	parts := strings.SplitN(name, "_.", 4)
	return len(parts) == 4 && parts[0] == "outbound" && isNumber(parts[1]) && hostFault(parts[3], false) == ""
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// destination checks where a route leads.
func (c *checker) destination(at path, d *networking.Destination) {
	switch {
	case d == nil:
		c.fail(badDestination, at, "destination is required")
		return
	case d.Host == "*":
		c.fail(badWildcard, at.field("host"), "invalid destination host *").hint("name a service")
	default:
		c.host(at.field("host"), d.Host)
	}
	if d.Subset != "" && !isLabel(d.Subset) {
		c.fail(badDestination, at.field("subset"), "subset name is invalid: %s", quote(d.Subset)).hint("use letters, digits and '-', at most 63")
	}
	if d.Port != nil {
		c.port(at.field("port").field("number"), d.Port.Number)
	}
}

// weights checks the shares of several destinations: any sum will do that is above 0 and no more
// than proxies can count (envoy.config.route.v3.WeightedCluster).
func (c *checker) weights(at path, weights []int32) {
	sum := int64(0)
	for i, w := range weights {
		if w < 0 {
			c.fail(badDestination, at.index(i).field("weight"), "weight %d < 0", w)
		}
		sum += int64(w)
	}
	if sum > math.MaxUint32 {
		c.fail(badDestination, at, "total destination weight %d is more than %d", sum, uint32(math.MaxUint32)).hint("shares of 100 will do")
	}
	if len(weights) > 1 && sum == 0 {
		c.fail(badDestination, at, "total destination weight = 0").hint("without weights, or with 0 for all, nothing says where requests go")
	}
}
