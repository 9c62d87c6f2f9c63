package envoyfilter

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"
)

// elements is a list that patches add to and take from, and which of its elements a patch names.
type elements[T any] struct {
	list []T
	// named: the patch names elements; chosen are those.
	named  bool
	chosen func(T) bool
}

// edit applies an operation that changes which elements there are. Where a patch names elements and
// there is none of them, it changes nothing; where it names none, things are added at an end.
func (e elements[T]) edit(op operation, value func() T) []T {
	at := -1
	if e.named {
		at = slices.IndexFunc(e.list, e.chosen)
	}
	switch op {
	case networking.EnvoyFilter_Patch_ADD:
		return append(e.list, value())
	case networking.EnvoyFilter_Patch_INSERT_FIRST:
		return slices.Insert(e.list, 0, value())
	case networking.EnvoyFilter_Patch_INSERT_BEFORE:
		if !e.named {
			return slices.Insert(e.list, 0, value())
		}
		if at >= 0 {
			return slices.Insert(e.list, at, value())
		}
	case networking.EnvoyFilter_Patch_INSERT_AFTER:
		if !e.named {
			return append(e.list, value())
		}
		if at >= 0 {
			return slices.Insert(e.list, at+1, value())
		}
	case networking.EnvoyFilter_Patch_REPLACE:
		if at >= 0 {
			e.list[at] = value()
		}
	case networking.EnvoyFilter_Patch_REMOVE:
		if e.named {
			return slices.DeleteFunc(e.list, e.chosen)
		}
	}
	return e.list
}
