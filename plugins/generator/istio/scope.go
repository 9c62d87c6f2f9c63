package istio

import (
	"cmp"
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/cluster"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/rule"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// Scope says what a proxy can see: the namespace it is in (or commonNamespace), and the Sidecar resource that narrows it (key, empty
// without).
type Scope struct {
	Namespace, Sidecar string
	// Selected are the workload selectors of the namespace's DestinationRules that the proxy answers, joined.
	Selected string
	// Router: of a gateway, for which its own namespace's services don't go before others.
	Router bool
}

// client is whose traffic rules are asked for.
func (s Scope) client() rule.Client { return rule.Client{Namespace: s.Namespace, Selected: s.Selected} }

// narrowed is the scope if a Sidecar narrows it, for what asks only then.
func (s Scope) narrowed() Scope {
	if s.Sidecar == "" {
		return Scope{}
	}
	return s
}

// host is a host as one scope sees it.
type host struct {
	Scope Scope
	Host  string
}

// scopes are the services and virtual services that proxies see. Only scopes that some view has are computed (live).
type scopes struct {
	live *incr.Input[Scope, struct{}]
	// visible is the service that a host means in a scope.
	visible incr.Collection[host, *config.Service]
	special
	// hosts lists them by scope.
	hosts *incr.Index[Scope, host, *config.Service]
	// sidecarFor is the Sidecar resource that counts for a workload.
	sidecarsIn *incr.Index[string, string, tables.Row[*config.Sidecar]]
	egress     *incr.Func[Scope, []egressListener]
	// destinations are the virtual services that lead to a host.
	destinations *incr.Index[string, string, tables.Row[*config.VirtualService]]
}

// everywhere is the join key of services that everybody sees.
const everywhere = istio.Everywhere

func (g *graph) addScopes() {
	g.live = incr.NewInput[Scope](g.Graph, "scopes", incr.Same[struct{}])
	g.sidecarsIn = incr.NewIndex(g.tables.Sidecars, "sidecars by namespace", func(_ string, r tables.Row[*config.Sidecar]) []string {
		return []string{r.Value.Namespace}
	})
	g.addEgress()
	g.addDestinations()
	exported := incr.Map(g.tables.Services, "exported services", sameExport, func(c *incr.Ctx, _ string, r tables.Row[*config.Service]) (export, error) {
		return export{r.Value, g.mesh.Exported(c, r.Value)}, nil
	})
	g.addSpecial(exported)
	pairs := incr.Join(g.live, exported, "services in scope",
		func(s Scope, _ struct{}) []string { return []string{everywhere, s.Namespace} },
		func(_ string, e export) []string { return e.namespaces },
		samePointer[config.Service],
		func(c *incr.Ctx, k incr.Pair[Scope, string], _ struct{}, e export) (*config.Service, error) {
			if !g.reaches(c, k.Left, e.service) {
				return nil, incr.Absent
			}
			return e.service, nil
		})
	byHost := incr.NewIndex(pairs, "services by host", func(k incr.Pair[Scope, string], s *config.Service) []host {
		return []host{{k.Left, s.Host}}
	})
	g.visible = incr.Group(byHost, "service of host", sameService, g.pick)
	g.hosts = incr.NewIndex(g.visible, "hosts in scope", func(h host, _ *config.Service) []Scope { return []Scope{h.Scope} })
}

type export struct {
	service    *config.Service
	namespaces []string
}

func sameExport(a, b export) bool {
	return a.service == b.service && slices.Equal(a.namespaces, b.namespaces)
}

func samePointer[V any](a, b *V) bool { return a == b }

// pick is the service that a host means where several namespaces declare it: the scope's own
// namespace wins, but for gateways, then what was given to it by name, then the oldest.
func (g *graph) pick(c *incr.Ctx, h host, members []incr.Item[incr.Pair[Scope, string], *config.Service]) (*config.Service, error) {
	list := make([]*config.Service, len(members))
	for i, m := range members {
		list[i] = m.Value
	}
	slices.SortFunc(list, func(a, b *config.Service) int {
		return cmp.Or(
			-compareBool(!h.Scope.Router && a.Namespace == h.Scope.Namespace, !h.Scope.Router && b.Namespace == h.Scope.Namespace),
			cmp.Compare(g.mesh.Reach(c, a, h.Scope.Namespace), g.mesh.Reach(c, b, h.Scope.Namespace)),
			config.Older(a, b))
	})
	if len(g.egressOf(c, h.Scope)) == 0 {
		return list[0], nil
	}
	if s := g.merge(c, h, list); s != nil {
		return s, nil
	}
	return nil, incr.Absent
}

// sameService compares services of a scope: rows, or rows narrowed to the same ports.
func sameService(a, b *config.Service) bool {
	return a == b || a.Key == b.Key && a.Row == b.Row && slices.Equal(a.Ports, b.Ports)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// reaches reports whether a scope's Sidecar lets a service through; without egress it lets everything.
func (g *graph) reaches(c *incr.Ctx, s Scope, service *config.Service) bool {
	list := g.egressOf(c, s)
	return len(list) == 0 ||
		slices.ContainsFunc(list, func(l egressListener) bool { return l.imports(service) != nil }) ||
		g.routedTo(c, s, service.Host)
}

// sidecarFor is the key of the Sidecar that counts for a workload: one of its namespace that selects it, else the namespace's own,
// else the root namespace's.
func (g *graph) sidecarFor(c *incr.Ctx, namespace string, labels map[string]string) string {
	if s := choose(g.sidecarsIn.Of(c, namespace), labels); s != "" {
		return s
	}
	root := g.mesh.Root(c)
	if root == "" || root == namespace {
		return ""
	}
	return choose(g.sidecarsIn.Of(c, root), nil)
}

// choose prefers Sidecars that select the labels; nil labels are selected by none. The oldest wins.
func choose(list []incr.Item[string, tables.Row[*config.Sidecar]], labels map[string]string) string {
	var best *config.Sidecar
	selects := false
	for _, i := range list {
		s := i.Value.Value
		mine := s.Spec.WorkloadSelector != nil
		if mine && (labels == nil || !istio.Selects(s.Spec.WorkloadSelector.Labels, labels)) {
			continue
		}
		if best == nil || mine && !selects || mine == selects && s.Before(best.Meta) < 0 {
			best, selects = s, mine
		}
	}
	if best == nil {
		return ""
	}
	return best.Key
}

// hasCluster reports whether proxies of a scope have an outbound cluster.
func (g *graph) hasCluster(c *incr.Ctx, scope Scope, name string) bool {
	n, ok := cluster.ParseName(name)
	if !ok {
		return false
	}
	return slices.ContainsFunc(g.providers.ServicesOf(c, n.Host), func(s *config.Service) bool {
		return g.mesh.Sees(c, s, scope.Namespace) && s.Port(n.Port) != nil && g.reaches(c, scope, s)
	})
}
