package extension

import (
	"cmp"
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
)

// List is the extensions of a proxy on one side of it. The zero value has none.
type List struct {
	// server: they are for what the workload receives.
	server bool
	// alone: the proxy has no agent.
	alone bool
	all   []*Extension
}

// NewList orders extensions by priority, highest first. They come in the order that counts between
// equals: the oldest first. alone is for a proxy without an agent.
func NewList(all []*Extension, server, alone bool) List {
	out := List{server, alone, slices.Clone(all)}
	slices.SortStableFunc(out.all, func(a, b *Extension) int { return cmp.Compare(b.priority(), a.priority()) })
	return out
}

// Equal reports whether both hold the same extensions.
func (l List) Equal(o List) bool {
	return l.server == o.server && l.alone == o.alone && slices.Equal(l.all, o.all)
}

// Requests are the filters for requests to a port that stand in phases; port is 0 where requests to
// any port come.
func (l List) Requests(port uint32, phases ...Phase) []*hcm.HttpFilter {
	return filters(l, port, phases, func(f filter) *hcm.HttpFilter { return f.request })
}

// Connections are the filters for connections to a port that stand in phases.
func (l List) Connections(port uint32, phases ...Phase) []*listenerv3.Filter {
	return filters(l, port, phases, func(f filter) *listenerv3.Filter { return f.connection })
}

func filters[F any](l List, port uint32, phases []Phase, of func(filter) *F) []*F {
	var out []*F
	for _, p := range phases {
		for _, e := range l.all {
			own := e.served
			if l.alone {
				own = e.alone
			}
			if f := of(own); f != nil && e.spec.Phase == p && e.takes(l.server, port) {
				out = append(out, f)
			}
		}
	}
	return out
}
