package gateway

import "slices"

// Neighbours are the names by which clients ask for an HTTPS server in TLS, and for the others of
// its place whose requests may come by connections for it. None, where its Gateway doesn't tell
// them apart.
func Neighbours(groups []Group, of Server) (own, others []string) {
	if !of.Gateway.Front.Misdirected || !of.HTTPS() {
		return nil, nil
	}
	for _, g := range groups {
		if g.Port != of.Port || g.Bind != of.Spec.Bind {
			continue
		}
		for _, s := range g.Servers {
			if s.HTTPS() && s.Route() != of.Route() {
				others = append(others, s.Names()...)
			}
		}
	}
	slices.Sort(others)
	return of.Names(), slices.Compact(others)
}
