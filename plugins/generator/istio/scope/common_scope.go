package scope

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/tables"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// Most namespaces see the same: all that is exported to everybody, and rules that their authors
// wrote for their own services. Their proxies share one scope, and with it clusters, listeners and
// load assignments. A namespace has a scope of its own where something counts for its proxies
// alone.

// commonNamespace stands for all namespaces that have nothing of their own; it can't be the name of
// one.
const commonNamespace = everywhere

// special says for which namespaces something counts that doesn't for all.
type special struct {
	services *incr.Index[string, string, export]
	hosts    *incr.Index[string, string, []string]
	rules    *incr.Index[string, string, []string]
	routes   *incr.Index[string, string, tables.Row[*config.VirtualService]]
	// consumers are the namespaces that have routes of their own for services of others, or for
	// such as have VirtualServices, too.
	consumers *incr.Index[string, string, string]
	// declared are the namespaces that have a service of a host.
	declared incr.Collection[string, []string]
	isOwn    *incr.Func[string, bool]

	tables          *tables.Tables
	mesh            *mesh.Settings
	virtualServices *VirtualServices
}

func newSpecial(graph *incr.Graph, t *tables.Tables, settings *mesh.Settings,
	exported incr.Collection[string, export], virtualServices *VirtualServices) *special {
	x := &special{tables: t, mesh: settings, virtualServices: virtualServices}
	x.services = incr.NewIndex(exported, "services for some namespaces", func(_ string, e export) []string {
		return slices.DeleteFunc(slices.Clone(e.namespaces), func(n string) bool { return n == everywhere })
	})
	byHost := incr.NewIndex(x.tables.Services, "namespaces of host", func(_ string, r tables.Row[*config.Service]) []string { return []string{r.Value.Host} })
	x.declared = incr.Group(byHost, "namespaces that declare a host", slices.Equal,
		func(_ *incr.Ctx, _ string, members []incr.Item[string, tables.Row[*config.Service]]) ([]string, error) {
			var out []string
			for _, m := range members {
				out = append(out, m.Value.Value.Namespace)
			}
			slices.Sort(out)
			return slices.Compact(out), nil
		})
	x.hosts = incr.NewIndex(x.declared, "namespaces with contested hosts", func(_ string, in []string) []string {
		if len(in) > 1 {
			return in
		}
		return nil
	})
	x.rules = incr.NewIndex(incr.Map(x.tables.DestinationRules, "namespaces of special rules", slices.Equal, x.ruleIsFor),
		"special rules", func(_ string, namespaces []string) []string { return namespaces })
	x.routes = x.indexRoutes("virtual services for some namespaces")
	x.consumers = incr.NewIndex(incr.Map(x.tables.VirtualServices, "namespaces of consumer routes",
		incr.Same[string], x.consumer),
		"consumer routes", func(_ string, namespace string) []string { return []string{namespace} })
	x.isOwn = incr.NewFunc(graph, "namespace is special", incr.Same[bool], func(c *incr.Ctx, namespace string) (bool, error) {
		return len(x.services.Of(c, namespace))+len(x.hosts.Of(c, namespace))+
			len(x.rules.Of(c, namespace))+len(x.routes.Of(c, namespace))+
			len(x.consumers.Of(c, namespace)) > 0 || x.hidesRoutes(c), nil
	})
	return x
}

// consumer is the namespace of a route of the Gateway API for what its clients call of another
// namespace, which counts for them alone, or beside a VirtualService, before which it counts for
// them.
func (x *special) consumer(c *incr.Ctx, _ string, r tables.Row[*config.VirtualService]) (string, error) {
	v := r.Value
	if !v.Route || !v.Serves(config.MeshGateway) {
		return "", incr.Absent
	}
	for _, h := range v.Spec.Hosts {
		if in, _ := x.declared.Get(c, h); !slices.Contains(in, v.Namespace) || x.virtualServices.named(c, h) {
			return v.Namespace, nil
		}
	}
	return "", incr.Absent
}

// ruleIsFor are the namespaces whose clients a rule concerns in a way of their own: those that it
// names, and its own unless it is about services of that namespace and for everybody.
func (x *special) ruleIsFor(c *incr.Ctx, _ string, r tables.Row[*config.DestinationRule]) ([]string, error) {
	rule := r.Value
	exports := rule.Exports()
	public := len(exports) == 0 && !rule.Private(x.mesh.Exports(c).DestinationRules) || slices.Equal(exports, []string{everywhere})
	if public && (rule.Namespace == x.mesh.Root(c) || x.isAboutOwn(c, rule)) {
		return nil, incr.Absent
	}
	out := slices.DeleteFunc(slices.Clone(exports), func(e string) bool { return e == everywhere || e == "." })
	out = append(out, rule.Namespace)
	slices.Sort(out)
	return slices.Compact(out), nil
}

// isAboutOwn reports whether a rule's host is a service of its own namespace, or none at all.
func (x *special) isAboutOwn(c *incr.Ctx, rule *config.DestinationRule) bool {
	if istio.IsWildcard(rule.Host) {
		return false
	}
	in, _ := x.declared.Get(c, rule.Host)
	return !slices.ContainsFunc(in, func(n string) bool { return n != rule.Namespace })
}

// indexRoutes finds virtual services by the namespaces that they are exported to by name, or whose
// connections they ask for.
func (x *special) indexRoutes(name string) *incr.Index[string, string, tables.Row[*config.VirtualService]] {
	return incr.NewIndex(x.tables.VirtualServices, name, func(_ string, r tables.Row[*config.VirtualService]) []string {
		v := r.Value
		var out []string
		if len(v.Spec.ExportTo) > 0 {
			out = slices.DeleteFunc(istio.Export(v.Spec.ExportTo, nil, v.Namespace), func(n string) bool { return n == everywhere })
		}
		for _, m := range connectionMatches(v.Spec) {
			if n := m.GetSourceNamespace(); n != "" {
				out = append(out, n)
			}
		}
		slices.Sort(out)
		return slices.Compact(out)
	})
}

type connectionMatch interface{ GetSourceNamespace() string }

func connectionMatches(s *networking.VirtualService) []connectionMatch {
	var out []connectionMatch
	for _, t := range s.Tcp {
		for _, m := range t.Match {
			out = append(out, m)
		}
	}
	for _, t := range s.Tls {
		for _, m := range t.Match {
			out = append(out, m)
		}
	}
	return out
}

// hidesRoutes reports whether the mesh exports virtual services that don't say to some namespaces
// alone: then nobody shares.
func (x *special) hidesRoutes(c *incr.Ctx) bool {
	return !slices.Contains(istio.Export(nil, x.mesh.Exports(c).VirtualServices, ""), everywhere)
}
