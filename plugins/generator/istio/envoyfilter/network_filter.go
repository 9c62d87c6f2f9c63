package envoyfilter

import (
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/types/known/anypb"
	networking "istio.io/api/networking/v1alpha3"
)

// networkFilters patches the filters of a chain: first which there are, then what each of them
// says.
func (l *listenerPatcher) networkFilters(f *listener.FilterChain) {
	list := l.chainPatches(networking.EnvoyFilter_NETWORK_FILTER, f)
	for _, p := range list {
		e := elements[*listener.Filter]{f.Filters, filterOf(p) != nil, func(x *listener.Filter) bool { return choosesFilter(p, x) }}
		f.Filters = e.edit(p.op, func() *listener.Filter { return copyOf[*listener.Filter](p) })
	}
	for _, x := range f.Filters {
		for _, p := range list {
			if p.mergesFilters() && choosesFilter(p, x) && (filterOf(p) != nil || sameType(x, p.value.(*listener.Filter))) {
				mergeFilter(x, p)
			}
		}
		l.bound(x.Name, x.GetConfigDiscovery())
		if x.Name == connectionManager {
			l.httpFilters(f, x)
		}
	}
}

// filterOf is the filter that a patch names; nil without.
func filterOf(p *Patch) *networking.EnvoyFilter_ListenerMatch_FilterMatch {
	return p.match.GetListener().GetFilterChain().GetFilter()
}

// choosesFilter reports whether a patch is for a network filter; one that names none is for each.
func choosesFilter(p *Patch, f *listener.Filter) bool {
	m := filterOf(p)
	return m == nil || m.Name == f.Name
}

func mergeFilter(f *listener.Filter, p *Patch) {
	if f.GetTypedConfig() == nil {
		return
	}
	value := p.value.(*listener.Filter)
	if value.Name != "" {
		f.Name = value.Name
	}
	if c := value.GetTypedConfig(); c != nil {
		f.ConfigType = &listener.Filter_TypedConfig{TypedConfig: mergeAny(f.GetTypedConfig(), c)}
	}
}

// typed is what has a wrapped configuration.
type typed interface{ GetTypedConfig() *anypb.Any }

// sameType reports whether a value is of the type of what it is to be merged into. Patches that
// name nothing are for that alone.
func sameType(x, value typed) bool {
	return x.GetTypedConfig().MessageName() == value.GetTypedConfig().MessageName()
}
