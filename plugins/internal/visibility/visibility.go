// Package visibility is how widely services may be seen, by what they and the mesh's settings say.
package visibility

import (
	"slices"

	meshv1 "istio.io/api/mesh/v1alpha1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/coxswain-mesh/coxswain/plugins/internal/selector"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
)

// Visibility is how widely ServiceEntries may be seen at most, whatever they say
// (MeshConfig.serviceEntryVisibility).
type Visibility = meshv1.ServiceEntryVisibility_Visibility

// Of is that of the first policy one of whose rules each take a namespace with these labels, or
// else the default. A namespace that nobody knows has none.
func Of(v *meshv1.ServiceEntryVisibility, labelled func() map[string]string) Visibility {
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

// Narrow are the namespaces of list (see istio.Export) that see a ServiceEntry of the namespace
// own, whose entries may be seen so widely.
func Narrow(list []string, most Visibility, own string) []string {
	switch most {
	case meshv1.ServiceEntryVisibility_NONE:
		return nil
	case meshv1.ServiceEntryVisibility_NAMESPACE:
		if slices.Contains(list, istio.Everywhere) || slices.Contains(list, own) {
			return []string{own}
		}
		return nil
	}
	return list
}
