// Package scope is what proxies see: which services and virtual services count for those of a
// namespace, whose Sidecar resource may narrow it. Scopes that see the same are one.
package scope

import (
	"cmp"
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/rule"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// only is the key of functions that have one value.
const only = ""

// Scope says what a proxy can see: the namespace it is in (or commonNamespace), and the Sidecar
// resource that narrows it (key, empty without).
type Scope struct {
	Namespace, Sidecar string
	// Selected are the workload selectors of the namespace's DestinationRules that the proxy
	// answers, joined.
	Selected string
	// Router: of a gateway, for which its own namespace's services don't go before others.
	Router bool
}

// Client is whose traffic rules are asked for.
func (s Scope) Client() rule.Client { return rule.Client{Namespace: s.Namespace, Selected: s.Selected} }

// Narrowed is the scope if a Sidecar narrows it, for what asks only then.
func (s Scope) Narrowed() Scope {
	if s.Sidecar == "" {
		return Scope{}
	}
	return s
}

// Host is a host as one scope sees it.
type Host struct {
	Scope Scope
	Host  string
}

// Scopes are the services and virtual services that proxies see. Only scopes that some view has are
// computed (live).
type Scopes struct {
	tables *tables.Tables
	mesh   *mesh.Settings
	domain string

	Live *incr.Input[Scope, struct{}]
	// Visible is the service that a host means in a scope.
	Visible incr.Collection[Host, *config.Service]
	special *special
	// Sidecars and VirtualServices say what comes in.
	Sidecars        *Sidecars
	VirtualServices *VirtualServices
	// Hosts lists them by scope.
	Hosts *incr.Index[Scope, Host, *config.Service]
	// OnPort are the hosts at which requests are routed at a port.
	OnPort *incr.Index[ScopePort, HostPort, *config.Service]
	// routedPorts are the ports of the services that a virtual service names; anyKnown reports
	// whether a wildcard has a service at one.
	routedPorts *incr.Func[routedKey, []uint32]
	anyKnown    *incr.Func[HostPort, bool]
}

// everywhere is the join key of services that everybody sees.
const everywhere = istio.Everywhere

// New adds the scopes to a graph; domain is the mesh's DNS domain.
func New(graph *incr.Graph, t *tables.Tables, settings *mesh.Settings, domain string) *Scopes {
	x := &Scopes{tables: t, mesh: settings, domain: domain}
	x.Live = incr.NewInput[Scope](graph, "scopes", incr.Same[struct{}])
	x.Sidecars = newSidecars(graph, t, settings)
	x.VirtualServices = newVirtualServices(graph, t, settings, x.Sidecars)
	exported := incr.Map(x.tables.Services, "exported services", sameExport, func(c *incr.Ctx, _ string, r tables.Row[*config.Service]) (export, error) {
		return export{r.Value, x.mesh.Exported(c, r.Value)}, nil
	})
	x.special = newSpecial(graph, t, settings, exported, x.VirtualServices)
	pairs := incr.Join(x.Live, exported, "services in scope",
		func(s Scope, _ struct{}) []string { return []string{everywhere, s.Namespace} },
		func(_ string, e export) []string { return e.namespaces },
		SamePointer[config.Service],
		func(c *incr.Ctx, k incr.Pair[Scope, string], _ struct{}, e export) (*config.Service, error) {
			if !x.Reaches(c, k.Left, e.service) {
				return nil, incr.Absent
			}
			return e.service, nil
		})
	byHost := incr.NewIndex(pairs, "services by host", func(k incr.Pair[Scope, string], s *config.Service) []Host {
		return []Host{{k.Left, s.Host}}
	})
	x.Visible = incr.Group(byHost, "service of host", SameService, x.pick)
	x.Hosts = incr.NewIndex(x.Visible, "hosts in scope", func(h Host, _ *config.Service) []Scope { return []Scope{h.Scope} })
	x.addUnregistered(graph)
	return x
}

type export struct {
	service    *config.Service
	namespaces []string
}

func sameExport(a, b export) bool {
	return a.service == b.service && slices.Equal(a.namespaces, b.namespaces)
}

// SamePointer reports whether two pointers are the same.
func SamePointer[V any](a, b *V) bool { return a == b }

// pick is the service that a host means where several namespaces declare it: the scope's own
// namespace wins, but for gateways, then what was given to it by name, then the oldest.
func (x *Scopes) pick(c *incr.Ctx, h Host, members []incr.Item[incr.Pair[Scope, string], *config.Service]) (*config.Service, error) {
	list := make([]*config.Service, len(members))
	for i, m := range members {
		list[i] = m.Value
	}
	slices.SortFunc(list, func(a, b *config.Service) int {
		return cmp.Or(
			-CompareBool(!h.Scope.Router && a.Namespace == h.Scope.Namespace, !h.Scope.Router && b.Namespace == h.Scope.Namespace),
			cmp.Compare(x.mesh.Reach(c, a, h.Scope.Namespace), x.mesh.Reach(c, b, h.Scope.Namespace)),
			config.Older(a, b))
	})
	if len(x.Sidecars.Egress(c, h.Scope)) == 0 {
		return list[0], nil
	}
	if s := x.merge(c, h, list); s != nil {
		return s, nil
	}
	return nil, incr.Absent
}

// SameService compares services of a scope: rows, or rows narrowed to the same ports.
func SameService(a, b *config.Service) bool {
	return a == b || a.Key == b.Key && a.Row == b.Row && slices.Equal(a.Ports, b.Ports)
}

// CompareBool orders true before false.
func CompareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// Reaches reports whether a scope's Sidecar lets a service through; without egress it lets
// everything.
func (x *Scopes) Reaches(c *incr.Ctx, s Scope, service *config.Service) bool {
	list := x.Sidecars.Egress(c, s)
	return len(list) == 0 ||
		slices.ContainsFunc(list, func(l Listener) bool { return l.Imports(service) != nil }) ||
		x.VirtualServices.routedTo(c, s, service.Host)
}

// Of is what proxies of a namespace see, whose Sidecar this is and who answer these selectors of
// rules.
func (x *Scopes) Of(c *incr.Ctx, namespace, sidecar, selected string) Scope {
	if sidecar == "" && selected == "" && !x.special.isOwn.Of(c, namespace) {
		return Scope{Namespace: commonNamespace}
	}
	return Scope{Namespace: namespace, Sidecar: sidecar, Selected: selected}
}

// OfRouter is the scope of a gateway's proxy.
func (x *Scopes) OfRouter(c *incr.Ctx, namespace, selected string) Scope {
	s := x.Of(c, namespace, "", selected)
	s.Router = s.Namespace != commonNamespace
	return s
}

// merge is what a host means in a scope with egress listeners: the first service that one imports,
// or that a virtual service leads to by it, with the ports that come with others.
func (x *Scopes) merge(c *incr.Ctx, h Host, candidates []*config.Service) *config.Service {
	var out *config.Service
	add := func(narrow *config.Service) {
		switch {
		case narrow == nil:
		case out == nil:
			out = narrow
		case out.Namespace == narrow.Namespace:
			out = out.Plus(narrow.Ports)
		}
	}
	list := x.Sidecars.Egress(c, h.Scope)
	for i := range list {
		for _, s := range candidates {
			if narrow := list[i].Imports(s); narrow != nil {
				add(narrow)
				break
			}
		}
		for _, ports := range x.VirtualServices.routedPortsOf(c, h, i) {
			add(list[i].leadingTo(destinationOf(h.Scope.Namespace, candidates), ports))
		}
	}
	return out
}

// Facts are what counts, for people who ask what splits views.
func (s Scope) Facts(out map[string]string) {
	out["namespace"] = s.Namespace
	if s.Sidecar != "" {
		out["sidecar"] = s.Sidecar
	}
	if s.Selected != "" {
		out["selected"] = s.Selected
	}
}
