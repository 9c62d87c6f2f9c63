package istio

import "slices"

// Reach says for whom a resource is, as a namespace sees it.
type Reach int

// Reaches, in the order in which resources count that compete: what a namespace has for itself
// comes before what was given to it by name, and that before what is everybody's.
const (
	Nobody Reach = iota
	Own
	Named
	Everybody
)

// Everywhere is the word of exportTo for all namespaces.
const Everywhere = "*"

const (
	toOwn    = "."
	toNobody = "~"
)

// Export is what exportTo means for a resource of the namespace own: names of namespaces, `*`
// alone, or nothing. Where it says nothing the mesh's defaults count, and where they say nothing
// everybody.
func Export(exportTo, defaults []string, own string) []string {
	if len(exportTo) == 0 {
		exportTo = defaultExport(defaults)
	}
	switch {
	case slices.Contains(exportTo, Everywhere):
		return []string{Everywhere}
	case slices.Contains(exportTo, toNobody):
		return nil
	}
	var out []string
	for _, e := range exportTo {
		if e == toOwn {
			e = own
		}
		out = append(out, e)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func defaultExport(defaults []string) []string {
	if len(defaults) == 0 {
		return []string{Everywhere}
	}
	return defaults
}

// ReachOf is how a resource of the namespace own reaches a client's (see Export).
func ReachOf(exportTo, defaults []string, own, client string) Reach {
	if len(exportTo) == 0 {
		exportTo = defaultExport(defaults)
	}
	switch {
	case slices.Contains(exportTo, Everywhere):
		return Everybody
	case slices.Contains(exportTo, toNobody):
		return Nobody
	case own == client && (slices.Contains(exportTo, toOwn) || slices.Contains(exportTo, own)):
		return Own
	case slices.Contains(exportTo, client):
		return Named
	}
	return Nobody
}

// MayDelegate reports whether a virtual service of the namespace client may leave routes to one of
// the namespace own.
func MayDelegate(exportTo, defaults []string, own, client string) bool {
	if len(exportTo) == 0 {
		exportTo = defaultExport(defaults)
	}
	return slices.ContainsFunc(exportTo, func(e string) bool {
		return e == Everywhere || e == client || e == toOwn && own == client
	})
}
