package envoyfilter

import (
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	networking "istio.io/api/networking/v1alpha3"
)

// Extension is the configuration that a patch adds under a name, for filters that are discovered;
// the first counts. nil without one.
func (s *Set) Extension(name string) *core.TypedExtensionConfig {
	for _, p := range s.by[networking.EnvoyFilter_EXTENSION_CONFIG] {
		if c := p.value.(*core.TypedExtensionConfig); p.op == networking.EnvoyFilter_Patch_ADD && c.Name == name {
			return c
		}
	}
	return nil
}
