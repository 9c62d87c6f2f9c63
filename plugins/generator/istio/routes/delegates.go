package routes

import (
	"net/http"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/route"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// Delegated names the routes that a virtual service, the root, leaves to another one.
type Delegated struct {
	Root routesKey
	// Delegate is the other's key, Nth how many of the root's routes are left to it before this
	// one.
	Delegate string
	Nth      int
}

// String says which it is, for people.
func (k Delegated) String() string { return k.Delegate + " for " + k.Root.Service }

// delegation is a run of routes of a virtual service: those of one delegate, or its own (By is
// nil).
type delegation struct {
	by     *config.Delegation
	nth    int
	routes []*networking.HTTPRoute
}

// delegations are the runs of a virtual service with delegates.
func delegations(v *config.VirtualService) []delegation {
	var out []delegation
	count := map[string]int{}
	for i, h := range v.Spec.Http {
		by := v.Delegations[i]
		if n := len(out); n > 0 && out[n-1].by == by {
			out[n-1].routes = append(out[n-1].routes, h)
			continue
		}
		d := delegation{by: by, routes: []*networking.HTTPRoute{h}}
		if by != nil {
			d.nth = count[by.To]
			count[by.To]++
		}
		out = append(out, d)
	}
	return out
}

// joined are the routes of a virtual service with delegates. Those of a delegate that Envoy would
// refuse are as they were; where they never were what it takes, requests for that delegate get 503,
// and those for others don't.
func (x *services) joined(c *incr.Ctx, k routesKey, v *config.VirtualService) ([]*routev3.Route, error) {
	var out []*routev3.Route
	for _, d := range delegations(v) {
		var list []*routev3.Route
		if d.by == nil {
			list = route.BuildSome(v, d.routes, x.sourceFor(c, k, v))
		} else if made, ok := x.delegated.Get(c, Delegated{k, d.by.To, d.nth}); ok {
			list = made
		} else {
			list = route.BuildSome(v, []*networking.HTTPRoute{closed(d.by.Match)}, x.sourceFor(c, k, v))
		}
		for _, r := range list {
			if out = append(out, r); route.TakesAll(r) {
				return checked(out)
			}
		}
	}
	return checked(out)
}

// closed is a route whose requests are answered that there is nobody.
func closed(match []*networking.HTTPMatchRequest) *networking.HTTPRoute {
	return &networking.HTTPRoute{Match: match, DirectResponse: &networking.HTTPDirectResponse{Status: http.StatusServiceUnavailable}}
}

func (x *services) buildDelegated(c *incr.Ctx, k Delegated) ([]*routev3.Route, error) {
	v, ok := x.from.Scopes.VirtualServices.Whole(c, k.Root.Service)
	if !ok {
		return nil, incr.Absent
	}
	for _, d := range delegations(v) {
		if d.by != nil && d.by.To == k.Delegate && d.nth == k.Nth {
			return checked(route.BuildSome(v, d.routes, x.sourceFor(c, k.Root, v)))
		}
	}
	return nil, incr.Absent
}
