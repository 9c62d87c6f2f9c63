// Package envoyfilter applies the patches of Istio's EnvoyFilter to finished resources.
//
// A Set holds the patches that count for a proxy, in their order. It takes encoded resources and
// returns them patched, or as they are where no patch is for them:
//
//	body, kept := set.Cluster(networking.EnvoyFilter_SIDECAR_OUTBOUND, name, nil, body)
package envoyfilter

import (
	"fmt"

	"github.com/coxswain-mesh/coxswain/plugins/internal/envoytypes"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
)

// Context is the side that a resource is made for: EnvoyFilter_SIDECAR_INBOUND,
// EnvoyFilter_SIDECAR_OUTBOUND or EnvoyFilter_GATEWAY.
type Context = networking.EnvoyFilter_PatchContext

type operation = networking.EnvoyFilter_Patch_Operation

// Patch is one of an EnvoyFilter's configPatches, read.
type Patch struct {
	applyTo networking.EnvoyFilter_ApplyTo
	op      operation
	match   *networking.EnvoyFilter_EnvoyConfigObjectMatch
	// value is nil where the patch has none.
	value proto.Message
}

// Parse reads a patch. The error says what is wrong with its value.
func Parse(p *networking.EnvoyFilter_EnvoyConfigObjectPatch) (*Patch, error) {
	out := &Patch{applyTo: p.ApplyTo, op: operationFor(p.ApplyTo, p.GetPatch().GetOperation()), match: p.Match, value: envoytypes.Patched(p.ApplyTo)}
	if out.value == nil || p.ApplyTo == networking.EnvoyFilter_BOOTSTRAP {
		return nil, fmt.Errorf("patches to %s are not for resources that proxies are served", p.ApplyTo)
	}
	if p.GetPatch().GetValue() == nil {
		out.value = nil
		if out.op != networking.EnvoyFilter_Patch_REMOVE {
			return nil, fmt.Errorf("%s of %s without a value", out.op, p.ApplyTo)
		}
		return out, nil
	}
	if err := decode(p.Patch.Value, out.value); err != nil {
		return nil, fmt.Errorf("%s of %s: value: %w", out.op, p.ApplyTo, err)
	}
	return out, nil
}

// operationFor is an operation as it is meant: where the order of things says nothing, to insert is
// to add.
func operationFor(to networking.EnvoyFilter_ApplyTo, op operation) operation {
	switch op {
	case networking.EnvoyFilter_Patch_INSERT_FIRST, networking.EnvoyFilter_Patch_INSERT_BEFORE, networking.EnvoyFilter_Patch_INSERT_AFTER:
	default:
		return op
	}
	switch to {
	case networking.EnvoyFilter_LISTENER_FILTER, networking.EnvoyFilter_NETWORK_FILTER, networking.EnvoyFilter_HTTP_FILTER, networking.EnvoyFilter_HTTP_ROUTE:
		return op
	}
	return networking.EnvoyFilter_Patch_ADD
}

// in reports whether the patch is for resources of a side.
func (p *Patch) in(c Context) bool {
	own := p.match.GetContext()
	return own == networking.EnvoyFilter_ANY || own == c
}

// merges reports whether the patch changes what it matches, rather than which elements a list has.
func (p *Patch) merges() bool {
	return p.op == networking.EnvoyFilter_Patch_MERGE || p.op == networking.EnvoyFilter_Patch_MERGE_AND_REPLACE_LIST
}

// mergesFilters reports whether the patch changes filters: those know no lists to be replaced.
func (p *Patch) mergesFilters() bool { return p.op == networking.EnvoyFilter_Patch_MERGE }

// mergeInto merges the value into what the patch matches.
func (p *Patch) mergeInto(dst proto.Message) {
	merge(dst, p.value, p.op == networking.EnvoyFilter_Patch_MERGE_AND_REPLACE_LIST)
}

// copyOf is a copy of a patch's value, for lists of resources that may be patched on.
func copyOf[M proto.Message](p *Patch) M { return proto.CloneOf(p.value).(M) }
