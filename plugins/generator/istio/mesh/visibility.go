package mesh

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

// visibility is how widely ServiceEntries may be seen at most, whatever they say
// (MeshConfig.serviceEntryVisibility).
type visibility = meshv1.ServiceEntryVisibility_Visibility

func (s *Settings) addVisibility() {
	settings := Project(s, "visibility of service entries", func(m *Config) *meshv1.ServiceEntryVisibility { return m.ServiceEntryVisibility },
		func(a, b *meshv1.ServiceEntryVisibility) bool { return proto.Equal(a, b) })
	s.entryVisibility = incr.NewFunc(s.graph, "visibility of a namespace's service entries", incr.Same[visibility], func(c *incr.Ctx, namespace string) (visibility, error) {
		return visibilityOf(settings.Of(c, only), func() map[string]string {
			r, _ := s.namespaces.Get(c, namespace)
			return r.Value
		}), nil
	})
}

// visibilityOf is that of the first policy one of whose rules each take a namespace with these
// labels, or else the default. A namespace that nobody knows has none.
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

// Exported are the namespaces that see a service (see istio.Export), which are the join keys of
// services too.
func (s *Settings) Exported(c *incr.Ctx, of *config.Service) []string {
	list := istio.Export(of.ExportTo, s.Exports(c).Services, of.Namespace)
	if of.Registry != config.External {
		return list
	}
	switch s.entryVisibility.Of(c, of.Namespace) {
	case meshv1.ServiceEntryVisibility_NONE:
		return nil
	case meshv1.ServiceEntryVisibility_NAMESPACE:
		if slices.Contains(list, istio.Everywhere) || slices.Contains(list, of.Namespace) {
			return []string{of.Namespace}
		}
		return nil
	}
	return list
}

// Sees reports whether a namespace sees a service.
func (s *Settings) Sees(c *incr.Ctx, of *config.Service, namespace string) bool {
	return s.Reach(c, of, namespace) != istio.Nobody
}

// Reach is how a service reaches a namespace.
func (s *Settings) Reach(c *incr.Ctx, of *config.Service, namespace string) istio.Reach {
	list := s.Exported(c, of)
	if len(list) == 0 {
		return istio.Nobody
	}
	return istio.ReachOf(list, nil, of.Namespace, namespace)
}
