// Package instances is what plugins of registries share that list instances: members of services
// become rows of services and endpoints, what can't be mapped is counted with a reason, and only
// what differs is published.
//
//	book := instances.New(instances.Naming{Source: "eureka", Registry: "Eureka", Namespace: "default", Host: host, Reasons: reasons})
//	book.Set("web", "web/10.0.0.1", members, lost) // all that this instance is in the service web
//	err := book.Publish(out)                       // what changed since
//
// It has no clock and starts nothing; one goroutine uses it.
package instances

import (
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Member is an instance at one of its ports: all but what depends on other instances of its
// service.
type Member struct {
	// Of names the instance, for people.
	Of   string
	Port Port
	// Endpoint's Host, Namespace, PortName and ServicePort are filled in. One of weight 0 is sent
	// nothing, unless that would be true of all at its port that could be.
	Endpoint sdk.Endpoint
	External bool
	// Sort and Stamp say which of several at one place is served: that of the lowest sort, then the
	// one with the highest stamp, then the healthiest. Those of a higher sort say the same once
	// more, and are not counted as Same.
	Sort  int
	Stamp int64
	// Lost is what can't be mapped of it, which counts while it is served.
	Lost Tally
}

// Port is one of a service: its number, the name that the registry has for it (or none), and what
// is spoken there; empty: each proxy finds out.
type Port struct {
	Number   uint32
	Name     string
	Protocol string
}

// MostPorts is how many ports a service may have.
const MostPorts = 64

// same reports whether two members are the same one.
func same(a, b Member) bool {
	x, y := &a.Endpoint, &b.Endpoint
	return a.Of == b.Of && a.Port == b.Port && a.External == b.External && a.Sort == b.Sort && a.Stamp == b.Stamp && maps.Equal(a.Lost, b.Lost) &&
		x.Host == y.Host && x.Namespace == y.Namespace && x.PortName == y.PortName && x.ServicePort == y.ServicePort &&
		x.Address == y.Address && x.Port == y.Port &&
		maps.Equal(x.Labels, y.Labels) && x.Network == y.Network && x.Locality == y.Locality && x.Weight == y.Weight && x.ServiceAccount == y.ServiceAccount &&
		x.Health == y.Health && x.TlsMode == y.TlsMode && x.Cluster == y.Cluster && x.Workload == y.Workload && x.Node == y.Node && x.Hostname == y.Hostname &&
		x.Subdomain == y.Subdomain && x.Index == y.Index && slices.Equal(x.MoreAddresses, y.MoreAddresses) && x.WorkloadNamespace == y.WorkloadNamespace &&
		x.SameCluster == y.SameCluster
}

// IsLabel reports whether a text can be a label's key: what selectors select by.
// Source: Kubernetes, "Labels and Selectors", syntax and character set.
func IsLabel(key string) bool {
	prefix, name, ok := strings.Cut(key, "/")
	if !ok {
		prefix, name = "", key
	} else if !hosts.ValidName(prefix, false) {
		return false
	}
	if name == "" || len(name) > 63 {
		return false
	}
	for i, c := range []byte(name) {
		alphanumeric := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		inside := c == '-' || c == '_' || c == '.'
		if !alphanumeric && (!inside || i == 0 || i == len(name)-1) {
			return false
		}
	}
	return true
}
