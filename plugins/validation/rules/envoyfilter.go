package rules

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/envoyrules"
)

// Codes about EnvoyFilters.
const (
	badPatch        = "COX2801"
	badPatchMatch   = "COX2802"
	badPatchValue   = "COX2803"
	unknownField    = "COX2804"
	oldFilterName   = "COX2805"
	unconfigured    = "COX2806"
	ineffectivePart = "COX2807"
	refusedValue    = "COX2808"
)

// connectionManager is the network filter that has HTTP filters.
const connectionManager = "envoy.filters.network.http_connection_manager"

// VersionedPatch is of a patch that needs something to be there, where that depends on the version
// of proxies.
const VersionedPatch = "IST0155"

func (c *checker) envoyFilter(at path, f *networking.EnvoyFilter) {
	c.workloads(at.field("workloadSelector"), f.WorkloadSelector != nil, f.WorkloadSelector.GetLabels())
	for i, t := range f.TargetRefs {
		c.target(at.field("targetRefs").index(i), t)
	}
	for i, p := range f.ConfigPatches {
		c.patch(at.field("configPatches").index(i), p, f.Priority)
	}
	for _, fault := range istio.VersionFaults(f, envoyrules.RegexSize) {
		here := at.field("configPatches").index(fault.Patch).field("match").field("proxy").field("proxyVersion")
		c.fail(badRegex, here, "Envoy filter: invalid regex for proxy version, [%s]", fault.Err)
	}
}

func (c *checker) patch(at path, p *networking.EnvoyFilter_EnvoyConfigObjectPatch, priority int32) {
	switch {
	case p.GetApplyTo() == networking.EnvoyFilter_INVALID:
		c.fail(badPatch, at.field("applyTo"), "Envoy filter: missing applyTo")
		return
	case p.Patch == nil:
		c.fail(badPatch, at.field("patch"), "Envoy filter: missing patch")
		return
	}
	operation := p.Patch.Operation
	switch {
	case operation == networking.EnvoyFilter_Patch_INVALID:
		c.fail(badPatch, at.field("patch").field("operation"), "Envoy filter: missing patch operation")
		return
	case operation != networking.EnvoyFilter_Patch_REMOVE && p.Patch.Value == nil:
		c.fail(badPatch, at.field("patch").field("value"), "Envoy filter: missing patch value for non-remove operation")
		return
	}
	c.operationFits(at.field("patch"), p)
	c.patchMatch(at.field("match"), p)
	if operation != networking.EnvoyFilter_Patch_REMOVE {
		c.patchValue(at.field("patch").field("value"), p)
	}
	c.relative(at.field("patch").field("operation"), p, priority)
}

// listed reports whether a patch is applied to an element of a list.
func inList(to networking.EnvoyFilter_ApplyTo) bool {
	return slices.Contains([]networking.EnvoyFilter_ApplyTo{
		networking.EnvoyFilter_FILTER_CHAIN, networking.EnvoyFilter_NETWORK_FILTER, networking.EnvoyFilter_HTTP_FILTER,
		networking.EnvoyFilter_LISTENER_FILTER, networking.EnvoyFilter_HTTP_ROUTE, networking.EnvoyFilter_VIRTUAL_HOST,
	}, to)
}

// operationFits warns of operations that do nothing where they are applied. Source: Istio API,
// EnvoyFilter.Patch.Operation.
func (c *checker) operationFits(at path, p *networking.EnvoyFilter_EnvoyConfigObjectPatch) {
	to, operation := p.ApplyTo, p.Patch.Operation
	here := at.field("operation")
	if p.Patch.FilterClass != networking.EnvoyFilter_Patch_UNSPECIFIED && operation != networking.EnvoyFilter_Patch_ADD {
		c.warn(ineffectivePart, at.field("filterClass"), "filterClass has an effect with operation ADD alone")
	}
	switch operation {
	case networking.EnvoyFilter_Patch_ADD:
		if to == networking.EnvoyFilter_ROUTE_CONFIGURATION || to == networking.EnvoyFilter_HTTP_ROUTE {
			c.warn("IST0153", here, "The ADD operation will be ignored when applyTo is set to %s", to)
		}
	case networking.EnvoyFilter_Patch_REMOVE:
		if to == networking.EnvoyFilter_ROUTE_CONFIGURATION {
			c.warn("IST0154", here, "The REMOVE operation will be ignored when applyTo is set to %s", to)
		}
	case networking.EnvoyFilter_Patch_REPLACE:
		if !slices.Contains([]networking.EnvoyFilter_ApplyTo{
			networking.EnvoyFilter_HTTP_FILTER, networking.EnvoyFilter_NETWORK_FILTER,
			networking.EnvoyFilter_LISTENER_FILTER, networking.EnvoyFilter_VIRTUAL_HOST,
		}, to) {
			c.warn("IST0152", here, "The REPLACE operation is only valid for filters and virtual hosts, not for %s", to)
		}
	case networking.EnvoyFilter_Patch_INSERT_BEFORE, networking.EnvoyFilter_Patch_INSERT_AFTER, networking.EnvoyFilter_Patch_INSERT_FIRST:
		if !inList(to) {
			c.warn(ineffectivePart, here, "%s has no effect with applyTo %s, which is no element of a list", operation, to).hint("use ADD or MERGE")
		}
	}
}

// relative warns of patches that depend on what other patches do.
func (c *checker) relative(at path, p *networking.EnvoyFilter_EnvoyConfigObjectPatch, priority int32) {
	operation := p.Patch.Operation
	if priority != 0 || operation != networking.EnvoyFilter_Patch_INSERT_BEFORE && operation != networking.EnvoyFilter_Patch_INSERT_AFTER {
		return
	}
	if p.GetMatch().GetProxy().GetProxyVersion() != "" {
		c.warn(VersionedPatch, at, "the patch is relative (%s), for one proxy version and without a priority: an "+
			"upgrade may leave it without effect", operation).
			hint("set spec.priority, or use INSERT_FIRST or ADD")
	}
}
