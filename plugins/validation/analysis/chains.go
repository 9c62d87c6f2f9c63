package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	gw "github.com/coxswain-mesh/coxswain/plugins/generator/istio/gateway"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

const sameConnections = "COX3016"

// filterChains finds servers of gateways, and TLS routes at them, that ask for the same names at
// the same port: one of them has each name, as generator/istio gives it.
func filterChains(w *world) {
	f := chainFinder{world: w, resources: map[gw.Owner]*Resource{}, routes: map[string][]*config.VirtualService{}}
	gateways, selectors := f.gateways()
	if len(gateways) == 0 {
		return
	}
	f.virtualServices()
	groups := [][]string{}
	for _, list := range w.meeting(selectors) {
		groups = append(groups, list...)
	}
	for _, s := range slices.Sorted(maps.Keys(selectors)) {
		groups = append(groups, []string{s})
	}
	slices.SortFunc(groups, slices.Compare)
	for _, group := range slices.CompactFunc(groups, slices.Equal) {
		var together []*config.Gateway
		for _, selector := range group {
			together = append(together, gateways[selector]...)
		}
		slices.SortFunc(together, func(a, b *config.Gateway) int { return a.Before(b.Meta) })
		f.listeners(together)
	}
}

// chainFinder looks at what gateways' listeners are made of.
type chainFinder struct {
	*world
	// resources are those of owners, which have a Gateway or a Service alone.
	resources map[gw.Owner]*Resource
	// routes are virtual services by the keys of their Gateways, in the order in which they count.
	routes map[string][]*config.VirtualService
}

// gateways are those that have servers with TLS, and what others have at the same workloads, by
// their selectors.
func (f *chainFinder) gateways() (by map[string][]*config.Gateway, selectors map[string]map[string]string) {
	by, selectors = map[string][]*config.Gateway{}, map[string]map[string]string{}
	tls := false
	for _, g := range of[*networking.Gateway](f.world) {
		if g.derived {
			continue // its status says it
		}
		selector, key := show(g.spec.Selector), kinds.Key(g.Namespace, g.Name)
		selectors[selector] = g.spec.Selector
		by[selector] = append(by[selector], &config.Gateway{Meta: config.Meta{Key: key, Namespace: g.Namespace, Name: g.Name}, Spec: g.spec})
		f.resources[gw.Owner{Gateway: key}] = g.Resource
		tls = tls || slices.ContainsFunc(g.spec.Servers, func(s *networking.Server) bool { return s.GetTls() != nil })
	}
	if !tls {
		return nil, nil
	}
	return by, selectors
}

// virtualServices reads those that have routes for connections.
func (f *chainFinder) virtualServices() {
	for _, v := range of[*networking.VirtualService](f.world) {
		if v.derived || len(v.spec.Tls)+len(v.spec.Tcp) == 0 {
			continue
		}
		payload, err := kinds.Encode(v.spec)
		if err != nil {
			continue // what is no message is its own fault
		}
		read, err := config.ParseVirtualService(&pb.Row{Key: kinds.Key(v.Namespace, v.Name), Payload: payload}, domain)
		if err != nil {
			continue
		}
		f.resources[gw.Owner{Service: read.Key}] = v.Resource
		for _, g := range read.Spec.Gateways {
			f.routes[g] = append(f.routes[g], read)
		}
	}
	for _, list := range f.routes {
		slices.SortFunc(list, func(a, b *config.VirtualService) int { return a.Before(b.Meta) })
	}
}

// routesOf are those of a server that are seen where its Gateway is.
func (f *chainFinder) routesOf(s gw.Server) []*config.VirtualService {
	return slices.DeleteFunc(slices.Clone(f.routes[s.Gateway.Key]), func(v *config.VirtualService) bool {
		return v.Reach(s.Gateway.Namespace, f.mesh.GetDefaultVirtualServiceExportTo()) == istio.Nobody
	})
}

// listeners looks at those of Gateways of the same workloads.
func (f *chainFinder) listeners(together []*config.Gateway) {
	var servers []gw.Server
	for _, g := range together {
		servers = append(servers, gw.ServersOf(g, func(number uint32, _ bool) (uint32, bool) { return number, false })...)
	}
	claims := map[string]*gw.Claims{}
	groups, _ := gw.Merge(servers)
	for _, group := range groups {
		at := fmt.Sprintf("%s:%d", cmp.Or(group.Bind, "0.0.0.0"), group.Port)
		if claims[at] == nil {
			claims[at] = gw.NewClaims()
		}
		for _, chain := range group.Chains(f.routesOf) {
			if chain.Server.Automatic() {
				continue // it asks for names of the mesh's own
			}
			owner := chain.Owner()
			_, lost, _ := claims[at].Take(gw.Match(chain.Names, nil), owner)
			for _, l := range lost {
				f.lost(at, owner, l)
			}
		}
	}
}

// lost reports what an owner doesn't get: of itself, and of who has it. Within one Gateway servers
// count in their order; otherwise age decides, which isn't known here.
func (f *chainFinder) lost(at string, who gw.Owner, l gw.Loss) {
	own, other := f.resource(who), f.resource(l.To)
	if own == nil || other == nil || l.Err != nil { // the rules say what Envoy would refuse
		return
	}
	has := "the older one has it"
	if who.Gateway == l.To.Gateway && (who.Service == "" || l.To.Service == "") {
		has = "the former has it"
	}
	said := finding.Errorf(sameConnections, fieldOf(who), "%s and %s ask for the same at %s: %s; %s", l.To, who, at, l.What(), has).
		WithHint("let one of them ask for other names, or listen elsewhere")
	f.reportOnce(own, said)
	if other != own {
		said.Field = fieldOf(l.To)
		f.reportOnce(other, said)
	}
}

// resource is that of an owner.
func (f *chainFinder) resource(o gw.Owner) *Resource {
	if o.Service != "" {
		return f.resources[gw.Owner{Service: o.Service}]
	}
	return f.resources[gw.Owner{Gateway: o.Gateway}]
}

// fieldOf is what asks for names in an owner's resource.
func fieldOf(o gw.Owner) string {
	if o.Service != "" {
		return "spec.tls"
	}
	return "spec.servers"
}
