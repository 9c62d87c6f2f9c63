package envoyfilter

import (
	"slices"

	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// Names of the listeners that take the connections of many ports: chains are told apart by port
// there.
const (
	virtualInbound  = "virtualInbound"
	virtualOutbound = "virtualOutbound"
)

// Listener patches a listener. kept is false for one that is removed.
func (s *Set) Listener(c Context, body []byte) (out []byte, kept bool) {
	if len(s.all) == 0 {
		return body, true
	}
	m := &listener.Listener{}
	if proto.Unmarshal(body, m) != nil {
		return body, true
	}
	p := listenerPatcher{Set: s, context: c, listener: m}
	if !p.whole() {
		return nil, false
	}
	return encode.Patched(m), true
}

// Listeners are those that patches add on a side. One without a name is none.
func (s *Set) Listeners(c Context) []*listener.Listener {
	var out []*listener.Listener
	for _, p := range s.by[networking.EnvoyFilter_LISTENER] {
		if l, ok := p.value.(*listener.Listener); ok && p.op == networking.EnvoyFilter_Patch_ADD && p.in(c) && l.Name != "" {
			out = append(out, l)
		}
	}
	return out
}

// listenerPatcher patches one listener, from the outside to the inside.
type listenerPatcher struct {
	*Set
	context  Context
	listener *listener.Listener
}

// patches are those to something in the listener.
func (l *listenerPatcher) patches(to networking.EnvoyFilter_ApplyTo) []*Patch {
	return l.of(to, l.context, l.matches)
}

// whole applies everything; false if the listener is removed.
func (l *listenerPatcher) whole() bool {
	l.inlineRoutes()
	for _, p := range l.patches(networking.EnvoyFilter_LISTENER) {
		if p.op == networking.EnvoyFilter_Patch_REMOVE {
			return false
		}
		if p.merges() {
			p.mergeInto(l.listener)
		}
	}
	l.listenerFilters()
	l.chains()
	return true
}

// matches asks the listener's name and port. In the listeners of many ports the port is asked of
// each chain.
func (l *listenerPatcher) matches(p *Patch) bool {
	m := p.match.GetListener()
	if m == nil {
		return true
	}
	if m.Name != "" && m.Name != l.listener.Name {
		return false
	}
	if p.applyTo != networking.EnvoyFilter_LISTENER && l.virtual() || m.PortNumber == 0 {
		return true
	}
	return l.listener.GetAddress().GetSocketAddress().GetPortValue() == m.PortNumber
}

func (l *listenerPatcher) virtual() bool {
	return l.listener.Name == virtualInbound || l.listener.Name == virtualOutbound
}

// listenerFilters applies patches one after the other: what one adds, the next may change.
func (l *listenerPatcher) listenerFilters() {
	for _, p := range l.patches(networking.EnvoyFilter_LISTENER_FILTER) {
		name := p.match.GetListener().GetListenerFilter()
		chosen := func(f *listener.ListenerFilter) bool { return f.Name == name }
		if !p.merges() {
			e := elements[*listener.ListenerFilter]{l.listener.ListenerFilters, name != "", chosen}
			l.listener.ListenerFilters = e.edit(p.op, func() *listener.ListenerFilter { return copyOf[*listener.ListenerFilter](p) })
			continue
		}
		for _, f := range l.listener.ListenerFilters {
			if p.mergesFilters() && name != "" && chosen(f) {
				mergeListenerFilter(f, p)
			}
		}
	}
	for _, f := range l.listener.ListenerFilters {
		l.bound(f.Name, f.GetConfigDiscovery())
	}
}

// mergeListenerFilter merges settings; the name stays.
func mergeListenerFilter(f *listener.ListenerFilter, p *Patch) {
	own, c := f.GetTypedConfig(), p.value.(*listener.ListenerFilter).GetTypedConfig()
	if own != nil && c != nil {
		f.ConfigType = &listener.ListenerFilter_TypedConfig{TypedConfig: mergeAny(own, c)}
	}
}

// chains patches the filter chains, the default one too. Those without filters go, and are not
// added.
func (l *listenerPatcher) chains() {
	l.listener.FilterChains = slices.DeleteFunc(l.listener.FilterChains, func(f *listener.FilterChain) bool {
		return len(f.Filters) == 0 || !l.chain(f)
	})
	if f := l.listener.DefaultFilterChain; len(f.GetFilters()) > 0 && !l.chain(f) {
		l.listener.DefaultFilterChain = nil
	}
	for _, p := range l.patches(networking.EnvoyFilter_FILTER_CHAIN) {
		if p.op == networking.EnvoyFilter_Patch_ADD && len(p.value.(*listener.FilterChain).Filters) > 0 {
			l.listener.FilterChains = append(l.listener.FilterChains, copyOf[*listener.FilterChain](p))
		}
	}
}
