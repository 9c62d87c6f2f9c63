// Package pieces takes resources apart where a client refuses one: into the virtual hosts of a
// RouteConfiguration, the filter chains of a Listener, and filters within these. Search finds out
// which of them the client refuses, by what it says to the resource without some; Variant makes
// the resource without those; Holdable says which of them may be held back from others, too.
//
// It knows Envoy's types alone: those of other clients are one piece each. It has no clock, lock or
// goroutine.
package pieces
