package analysis

import (
	"fmt"
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/plugins/validation/rules"
	networking "istio.io/api/networking/v1alpha3"
)

const relativePatch = "IST0151"

// relativePatches finds patches whose effect depends on what others have done before them, of
// filters without a priority. Where another patch of the same name is for some versions of proxies
// alone, an upgrade changes what is there.
func relativePatches(w *world) {
	versioned := map[string]bool{}
	for _, f := range of[*networking.EnvoyFilter](w) {
		for i, p := range f.spec.ConfigPatches {
			name := patchName(p)
			if f.spec.Priority == 0 && isRelative(p) {
				at := fmt.Sprintf("spec.configPatches[%d].patch.operation", i)
				told := finding.Warnf(relativePatch, at,
					"%s depends on what is there, and without a priority it is open what other patches do before it", p.Patch.Operation)
				replaces := p.Patch.Operation == networking.EnvoyFilter_Patch_REPLACE || p.Patch.Operation == networking.EnvoyFilter_Patch_REMOVE
				if name != "" && versioned[name] && replaces {
					told = finding.Warnf(rules.VersionedPatch, at,
						"%s depends on what is there, and another patch of %s is for some versions of proxies "+
							"alone: an upgrade may end its effect", p.Patch.Operation, name)
				}
				w.report(f.Resource, told.WithHint("set spec.priority, or use INSERT_FIRST or ADD"))
			}
			if p.GetMatch().GetProxy().GetProxyVersion() != "" {
				versioned[name] = true
			}
		}
	}
}

// patchName is the name of what a patch brings, or of the filter that it is about.
func patchName(p *networking.EnvoyFilter_EnvoyConfigObjectPatch) string {
	if name := p.GetPatch().GetValue().GetFields()["name"].GetStringValue(); name != "" {
		return name
	}
	return p.GetMatch().GetListener().GetFilterChain().GetFilter().GetName()
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
