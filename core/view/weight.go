package view

import (
	"iter"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Weight is how many things of use a resource holds that proxies could lose: of an assignment 1 if
// it has endpoints, of routes the virtual hosts that have any, of everything else 1. A resource
// that is not there has none.
func Weight(typeURL string, b *Body) int {
	if b == nil || !b.Exists() {
		return 0
	}
	// Fields: ClusterLoadAssignment.endpoints 2, LocalityLbEndpoints.lb_endpoints 2;
	// RouteConfiguration.virtual_hosts 2, VirtualHost.routes 3.
	switch {
	case strings.HasSuffix(typeURL, "/envoy.config.endpoint.v3.ClusterLoadAssignment"):
		return min(1, count(b.Value(), 2, 2))
	case strings.HasSuffix(typeURL, "/envoy.config.route.v3.RouteConfiguration"):
		return count(b.Value(), 2, 3)
	}
	return 1
}

// Equal reports whether two bodies of a name, which may be nil, have the same content, or neither
// exists.
func Equal(a, b *Body) bool {
	if a == nil || !a.Exists() || b == nil || !b.Exists() {
		return (a == nil || !a.Exists()) && (b == nil || !b.Exists())
	}
	return a == b || a.Version() == b.Version()
}

// count returns how many messages of a field have a field themselves.
func count(message []byte, field, inner protowire.Number) (n int) {
	for text := range fields(message, field) {
		for range fields(text, inner) {
			n++
			break
		}
	}
	return n
}

// fields yields the values of a field of messages.
func fields(message []byte, field protowire.Number) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(message) > 0 {
			number, kind, n := protowire.ConsumeTag(message)
			if n < 0 {
				return
			}
			size := protowire.ConsumeFieldValue(number, kind, message[n:])
			if size < 0 {
				return
			}
			if number == field && kind == protowire.BytesType {
				if text, _ := protowire.ConsumeBytes(message[n : n+size]); !yield(text) {
					return
				}
			}
			message = message[n+size:]
		}
	}
}

// Between yields the names that may have another body in one snapshot than in the other, some
// perhaps twice.
func Between(old, now *Snapshot) iter.Seq[string] {
	return func(yield func(string) bool) {
		if old == now {
			return
		}
		was, is := old.sets(), now.sets()
		var gone, come []*Set
		for _, s := range was {
			if !slices.Contains(is, s) {
				gone = append(gone, s)
			}
		}
		for _, s := range is {
			if !slices.Contains(was, s) {
				come = append(come, s)
			}
		}
		for i := range max(len(gone), len(come)) {
			var a, b *Set
			if i < len(gone) {
				a = gone[i]
			}
			if i < len(come) {
				b = come[i]
			}
			for name := range changed(a, b) {
				if !yield(name) {
					return
				}
			}
		}
	}
}

func (s *Snapshot) sets() []*Set {
	if s == nil {
		return nil
	}
	return append([]*Set{s.own}, s.parts...)
}

// changed yields the names that may not have the same body in two sets.
func changed(a, b *Set) iter.Seq[string] {
	steps, known := b.since(a)
	if !known {
		return differing(a.Bodies(), b.Bodies())
	}
	return func(yield func(string) bool) {
		for _, s := range steps {
			for _, name := range s.names {
				if !yield(name) {
					return
				}
			}
		}
	}
}

// differing yields the names that have not the same body in two lists in order of names.
func differing(a, b []*Body) iter.Seq[string] {
	return func(yield func(string) bool) {
		for len(a) > 0 || len(b) > 0 {
			switch {
			case len(b) == 0 || len(a) > 0 && a[0].name < b[0].name:
				if !yield(a[0].name) {
					return
				}
				a = a[1:]
			case len(a) == 0 || b[0].name < a[0].name:
				if !yield(b[0].name) {
					return
				}
				b = b[1:]
			default:
				if a[0] != b[0] && !yield(a[0].name) {
					return
				}
				a, b = a[1:], b[1:]
			}
		}
	}
}
