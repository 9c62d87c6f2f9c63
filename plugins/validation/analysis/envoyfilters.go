package analysis

import (
	"fmt"
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	networking "istio.io/api/networking/v1alpha3"
)

const relativePatch = "IST0151"

// relativePatches finds patches whose effect depends on what others have done before them, of
// filters without a priority.
func relativePatches(w *world) {
	for _, f := range of[*networking.EnvoyFilter](w) {
		if f.spec.Priority != 0 {
			continue
		}
		for i, p := range f.spec.ConfigPatches {
			if isRelative(p) {
				at := fmt.Sprintf("spec.configPatches[%d].patch.operation", i)
				w.report(f.Resource, finding.Warnf(relativePatch, at,
					"%s depends on what is there, and without a priority it is open what other patches do before it",
					p.Patch.Operation).
					WithHint("set spec.priority, or use INSERT_FIRST or ADD"))
			}
		}
	}
}

// isRelative reports whether a patch needs something to be there, and takes effect at all. One for
// some versions of proxies alone has a warning of its own.
func isRelative(p *networking.EnvoyFilter_EnvoyConfigObjectPatch) bool {
	replaced := []networking.EnvoyFilter_ApplyTo{
		networking.EnvoyFilter_HTTP_FILTER, networking.EnvoyFilter_NETWORK_FILTER, networking.EnvoyFilter_LISTENER_FILTER,
		networking.EnvoyFilter_VIRTUAL_HOST,
	}
	switch p.GetPatch().GetOperation() {
	case networking.EnvoyFilter_Patch_INSERT_BEFORE, networking.EnvoyFilter_Patch_INSERT_AFTER:
		return p.GetMatch().GetProxy().GetProxyVersion() == ""
	case networking.EnvoyFilter_Patch_REMOVE:
		return p.ApplyTo != networking.EnvoyFilter_ROUTE_CONFIGURATION
	case networking.EnvoyFilter_Patch_REPLACE:
		return slices.Contains(replaced, p.ApplyTo)
	}
	return false
}
