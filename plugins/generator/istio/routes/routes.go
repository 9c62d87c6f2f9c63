// Package routes makes the route configurations of sidecars and gateways: lists of virtual hosts,
// each of which is encoded once for all. What a route looks like is in route.
package routes

import (
	"bytes"
	"slices"

	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/destination"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/gateways"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/patches"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/scope"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// From is what routes are made from.
type From struct {
	Tables       *tables.Tables
	Mesh         *mesh.Settings
	Scopes       *scope.Scopes
	Destinations *destination.Destinations
	Gateways     *gateways.Gateways
	Patches      *patches.Patches
	// QUIC: gateways offer HTTP/3.
	QUIC bool
	// PersistentSessions stay with an endpoint.
	PersistentSessions bool
}

// View is what routes depend on of the proxies that use them.
type View struct {
	Scope scope.Scope
	// Namespace is the proxies' own, for which matches may ask.
	Namespace string
	// Domain completes short host names.
	Domain string
	// Dialing says which addresses of services count.
	Dialing config.Dialing
	// Selections are the source selectors that the proxies answer.
	Selections string
	// Gateways that the proxies are, and where they listen for their ports (see
	// gateways.Key); empty for sidecars.
	Gateways config.Keys
	Ports    string
	// Patches change them (patches.Keys).
	Patches string
	// Headers say what proxies add to requests.
	Headers Headers
}

// Headers are the settings of proxies (ProxyConfig.proxyHeaders) that routes heed.
type Headers struct {
	// NoAttempts: the number of attempts stays unsaid. ForwardedHost: where the host is rewritten,
	// the one that was asked for is said.
	NoAttempts, ForwardedHost bool
}

// restKey is what the virtual host for unknown hosts depends on: the cluster for what no service
// is, and the headers.
type restKey struct {
	Outside string
	Headers Headers
}

// Key names a route configuration of a view.
type Key struct {
	View View
	Name string
}

// Routes are those of all proxies.
type Routes struct {
	from     *From
	services *services
	sessions sessions
	names    *names

	someHosts   *incr.Func[someHostsKey, [][]byte]
	virtualHost *incr.Func[hostKey, []byte]
	rest        *incr.Func[restKey, []byte]
	patched     patched
	// Configurations are encoded in fields.
	Configurations *incr.Func[Key, [][]byte]
}

// New adds routes to a graph.
func New(graph *incr.Graph, from From) *Routes {
	x := &Routes{from: &from, services: newServices(graph, &from), sessions: sessions{&from}, names: newNames(graph, &from)}
	x.virtualHost = incr.NewFunc(graph, "virtual host", bytes.Equal, x.buildVirtualHost)
	x.someHosts = incr.NewFunc(graph, "some virtual hosts", equalFields,
		func(c *incr.Ctx, k someHostsKey) ([][]byte, error) {
			return x.theirHosts(c, k.View, k.Port, x.names.some.Of(c, k), nil), nil
		})
	x.rest = incr.NewFunc(graph, "other hosts", bytes.Equal, func(_ *incr.Ctx, k restKey) ([]byte, error) {
		h := route.BlockAll()
		if k.Outside != cluster.BlackHole {
			h = route.AllowAny(k.Outside, k.Headers.ForwardedHost)
		}
		h.IncludeRequestAttemptCount = !k.Headers.NoAttempts
		return route.EncodedHost(h), nil
	})
	x.Configurations = incr.NewFunc(graph, "route configuration", equalFields, func(c *incr.Ctx, k Key) ([][]byte, error) {
		if k.View.Patches != "" {
			return x.patched.of(c, k)
		}
		if k.View.Gateways != "" {
			return x.ofGateway(c, k)
		}
		return x.ofSidecar(c, k), nil
	})
	x.patched = newPatched(graph, x)
	return x
}

// equalFields reports whether resources in fields are the same.
func equalFields(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) }

// HeadersOf are the settings of a proxy that its routes heed.
func HeadersOf(proxy *meshv1.ProxyConfig) Headers {
	h := proxy.GetProxyHeaders()
	return Headers{NoAttempts: h.GetAttemptCount().GetDisabled().GetValue(), ForwardedHost: h.GetXForwardedHost().GetEnabled().GetValue()}
}
