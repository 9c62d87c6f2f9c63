package istio

import (
	"slices"

	"google.golang.org/protobuf/proto"
	meshv1 "istio.io/api/mesh/v1alpha1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/internal/selector"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

// visibility is how widely ServiceEntries may be seen at most, whatever they say (MeshConfig.serviceEntryVisibility).
type visibility = meshv1.ServiceEntryVisibility_Visibility

func (g *graph) addVisibility() {
	settings := project(g, "visibility of service entries", func(m *meshConfig) *meshv1.ServiceEntryVisibility { return m.ServiceEntryVisibility },
		func(a, b *meshv1.ServiceEntryVisibility) bool { return proto.Equal(a, b) })
	g.entryVisibility = incr.NewFunc(g.Graph, "visibility of a namespace's service entries", incr.Same[visibility], func(c *incr.Ctx, namespace string) (visibility, error) {
		return visibilityOf(settings.Of(c, only), func() map[string]string {
			r, _ := g.tables.Namespaces.Get(c, namespace)
			return r.Value
		}), nil
	})
}

// visibilityOf is that of the first policy one of whose rules each take a namespace with these labels, or else the default. A namespace that nobody knows has none.
func visibilityOf(v *meshv1.ServiceEntryVisibility, labelled func() map[string]string) visibility {
	if !v.GetApplyToSidecars() {
		return meshv1.ServiceEntryVisibility_PUBLIC
	}
	for _, p := range v.Policies {
		if !slices.ContainsFunc(p.MatchingRules, func(r *meshv1.ServiceEntryVisibility_MatchRule) bool {
			takes, err := selector.Of(r.GetNamespaceSelector())
			return err != nil || !takes.Matches(labels.Set(labelled()))
		}) {
			return p.Visibility
		}
	}
	return v.DefaultVisibility
}

// exportedNamespaces are those that see a service (see istio.Export), which are the join keys of services too.
func (g *graph) exportedNamespaces(c *incr.Ctx, s *config.Service) []string {
	list := istio.Export(s.ExportTo, g.exports.Of(c, only).services, s.Namespace)
	if s.Registry != external {
		return list
	}
	switch g.entryVisibility.Of(c, s.Namespace) {
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
	return g.reach(c, s, namespace) != istio.Nobody
}

// reach is how a service reaches a namespace.
func (g *graph) reach(c *incr.Ctx, s *config.Service, namespace string) istio.Reach {
	list := g.exportedNamespaces(c, s)
	if len(list) == 0 {
		return istio.Nobody
	}
	return istio.ReachOf(list, nil, s.Namespace, namespace)
}
