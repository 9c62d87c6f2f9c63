// Package ingress finds what a Sidecar resource says of the workload's own ports.
package ingress

import (
	"net/netip"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// Key names what a Sidecar says of the workload's own ports; the zero value where it says nothing.
type Key struct {
	Sidecar string
	// Address is the proxy's own, where ports are named: listeners and clusters hold it. So they do
	// its namespace.
	Address, Namespace string
	// Other is its first address of the other family, if it has one.
	Other string
}

// Ingress is what Sidecars say of workloads' own ports.
type Ingress struct {
	sidecars *incr.Input[string, tables.Row[*config.Sidecar]]
}

// New reads Sidecars from tables.
func New(t *tables.Tables) *Ingress { return &Ingress{sidecars: t.Sidecars} }

// Of is what the Sidecar of a key (empty: none) says of a proxy's ports.
func (x *Ingress) Of(c *incr.Ctx, sidecar string, n *node.Node) Key {
	spec := x.Spec(c, sidecar)
	switch {
	case len(spec.GetIngress()) > 0:
		own := unicast(n.Addresses)
		return Key{
			Sidecar: sidecar, Address: own, Namespace: n.Namespace, Other: otherFamily(n.Addresses, own),
		}
	case spec.GetInboundConnectionPool() != nil:
		return Key{Sidecar: sidecar}
	}
	return Key{}
}

// Sidecar is that of a key, nil without one.
func (x *Ingress) Sidecar(c *incr.Ctx, key string) *config.Sidecar {
	if key == "" {
		return nil
	}
	r, ok := x.sidecars.Get(c, key)
	if !ok {
		return nil
	}
	return r.Value
}

// Spec is a Sidecar's, nil without one.
func (x *Ingress) Spec(c *incr.Ctx, key string) *networking.Sidecar {
	if s := x.Sidecar(c, key); s != nil {
		return s.Spec
	}
	return nil
}

// unicast is the first address that others can dial, or the first one where there is none.
func unicast(addresses []string) string {
	for _, a := range addresses {
		if ip, err := netip.ParseAddr(a); err == nil && ip.IsGlobalUnicast() {
			return a
		}
	}
	return addresses[0]
}

// otherFamily is the first address that isn't of the family of one of them; empty where there is
// none.
func otherFamily(addresses []string, one string) string {
	family := config.FamiliesOf([]string{one}, false)
	if i := slices.IndexFunc(addresses, func(a string) bool { return !family.Reach(a) }); i >= 0 {
		return addresses[i]
	}
	return ""
}

// Named reports whether the Sidecar names the ports; it may say something of their connections
// alone.
func (k Key) Named() bool { return k.Address != "" }

// Bind is where listeners of ports are that the Sidecar binds to no address: the proxy's own, or
// any of its family where it has none that others can dial.
func (k Key) Bind() string {
	if ip, err := netip.ParseAddr(k.Address); err == nil && ip.IsGlobalUnicast() {
		return k.Address
	}
	return config.FamiliesOf([]string{k.Address}, false).Any()[0]
}

// Pool is what the Sidecar says of connections to a port of the workload: for the port, and
// otherwise for all.
func (x *Ingress) Pool(c *incr.Ctx, k Key, port uint32) *networking.ConnectionPoolSettings {
	spec := x.Spec(c, k.Sidecar)
	for _, l := range spec.GetIngress() {
		if l.GetPort().GetNumber() == port && l.ConnectionPool != nil {
			return l.ConnectionPool
		}
	}
	return spec.GetInboundConnectionPool()
}

// Facts are what counts, for people who ask what splits views.
func (k Key) Facts(out map[string]string) {
	if k.Sidecar != "" {
		out["ingress"] = k.Sidecar
		out["address"] = k.Address
	}
}
