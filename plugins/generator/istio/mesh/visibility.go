package mesh

import (
	"google.golang.org/protobuf/proto"
	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/internal/visibility"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/incr"
)

func (s *Settings) addVisibility() {
	settings := Project(s, "visibility of service entries", func(m *Config) *meshv1.ServiceEntryVisibility { return m.ServiceEntryVisibility },
		func(a, b *meshv1.ServiceEntryVisibility) bool { return proto.Equal(a, b) })
	const name = "visibility of a namespace's service entries"
	s.entryVisibility = incr.NewFunc(s.graph, name, incr.Same[visibility.Visibility], func(c *incr.Ctx, namespace string) (visibility.Visibility, error) {
		return visibility.Of(settings.Of(c, only), func() map[string]string {
			r, _ := s.namespaces.Get(c, namespace)
			return r.Value
		}), nil
	})
}

// Exported are the namespaces that see a service (see istio.Export), which are the join keys of
// services too.
func (s *Settings) Exported(c *incr.Ctx, of *config.Service) []string {
	list := istio.Export(of.ExportTo, s.Exports(c).Services, of.Namespace)
	if of.Registry != config.External {
		return list
	}
	return visibility.Narrow(list, s.entryVisibility.Of(c, of.Namespace), of.Namespace)
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
