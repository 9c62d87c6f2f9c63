package istio

import (
	"slices"

	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// visibility is how widely ServiceEntries may be seen at most, whatever they say (MeshConfig.serviceEntryVisibility).
type visibility = meshv1.ServiceEntryVisibility_Visibility

func (g *graph) addVisibility() {
	g.entryVisibility = project(g, "visibility of service entries", func(m *meshConfig) visibility {
		return visibilityOf(m.ServiceEntryVisibility)
	}, incr.Same[visibility])
}

// visibilityOf is that of the first policy that is for all namespaces, or else the default. Labels of namespaces are unknown here: a
// selector that asks for some is for none.
func visibilityOf(v *meshv1.ServiceEntryVisibility) visibility {
	if !v.GetApplyToSidecars() {
		return meshv1.ServiceEntryVisibility_PUBLIC
	}
	for _, p := range v.Policies {
		if !slices.ContainsFunc(p.MatchingRules, func(r *meshv1.ServiceEntryVisibility_MatchRule) bool {
			return !selectsUnlabelled(r.GetNamespaceSelector())
		}) {
			return p.Visibility
		}
	}
	return v.DefaultVisibility
}

// selectsUnlabelled reports whether a selector takes what has no labels. nil takes nothing.
func selectsUnlabelled(s *meshv1.LabelSelector) bool {
	return s != nil && len(s.MatchLabels) == 0 && !slices.ContainsFunc(s.MatchExpressions, func(r *meshv1.LabelSelectorRequirement) bool {
		return r.Operator != "NotIn" && r.Operator != "DoesNotExist"
	})
}

// exportedNamespaces are those that see a service (see config.Export), which are the join keys of services too.
func (g *graph) exportedNamespaces(c *incr.Ctx, s *config.Service) []string {
	list := config.Export(s.ExportTo, g.exports.Of(c, only).services, s.Namespace)
	if s.Registry != external {
		return list
	}
	switch g.entryVisibility.Of(c, only) {
	case meshv1.ServiceEntryVisibility_NONE:
		return nil
	case meshv1.ServiceEntryVisibility_NAMESPACE:
		if slices.Contains(list, everywhere) || slices.Contains(list, s.Namespace) {
			return []string{s.Namespace}
		}
		return nil
	}
	return list
}

// isExported reports whether a service is seen in a namespace.
func (g *graph) isExported(c *incr.Ctx, s *config.Service, namespace string) bool {
	return g.reach(c, s, namespace) != config.Nobody
}

// reach is how a service reaches a namespace.
func (g *graph) reach(c *incr.Ctx, s *config.Service, namespace string) config.Reach {
	list := g.exportedNamespaces(c, s)
	if len(list) == 0 {
		return config.Nobody
	}
	return config.ReachOf(list, nil, s.Namespace, namespace)
}
