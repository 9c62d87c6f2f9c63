package manifest

import (
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// Generators returns the generators that may serve the proxy, in the order in which they are asked:
// file order, but for a proxy whose metadata names a GENERATOR the entries that select it go first.
// For each type the first that offers it generates. named: it asks for listeners by name
// (NamedListeners); then none but those that select it so may serve it.
func (s *Set) Generators(node *corev3.Node, named bool) []*Entry {
	generator := ""
	if named {
		generator = NamedListeners
	}
	var first, others []*Entry
	for _, e := range s.Plugins {
		switch {
		case !e.Runs() || !e.Kind.Proto().Generates() || !e.Select.matches(node, generator):
		case e.Select != nil && e.Select.Generator != "":
			// It matches, so the proxy names it.
			first = append(first, e)
		default:
			others = append(others, e)
		}
	}
	if named && len(first) > 0 {
		return first // it will ask for nothing else, and others may take its node for a bad one
	}
	return append(first, others...)
}

// Patches returns the patches that apply to the proxy, in file order.
func (s *Set) Patches(node *corev3.Node) []*Entry {
	var found []*Entry
	for _, e := range s.Plugins {
		if e.Runs() && e.Kind.Proto().Patches() && e.Select.Matches(node) {
			found = append(found, e)
		}
	}
	return found
}

// Generator returns the entry that makes a type for a proxy, or nil. offers reports whether an
// entry's plugin has declared the type; the entry's own `types` are heeded here.
func (s *Set) Generator(typeURL string, node *corev3.Node, named bool, offers func(*Entry) bool) *Entry {
	for _, e := range s.Generators(node, named) {
		if e.Serves(typeURL) && offers(e) {
			return e
		}
	}
	return nil
}

// Choose is Generator by name: which of the generators in offering serves the type to the proxy, or
// "".
func (s *Set) Choose(typeURL string, node *corev3.Node, named bool, offering []string) string {
	e := s.Generator(typeURL, node, named, func(e *Entry) bool { return slices.Contains(offering, e.Name) })
	if e == nil {
		return ""
	}
	return e.Name
}
