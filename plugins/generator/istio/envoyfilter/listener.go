package envoyfilter

import (
	"slices"

	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/held"
	"github.com/coxswain-mesh/coxswain/sdk/envoyrules"
)

// Names of the listeners that take the connections of many ports: chains are told apart by port
// there.
const (
	virtualInbound  = "virtualInbound"
	virtualOutbound = "virtualOutbound"
)

// SpoiltChain is a filter chain of which patches make what Envoy would refuse; without Chain it is
// what the listener says beside its chains.
type SpoiltChain struct {
	Chain *listener.FilterChain
	// Err is why.
	Err error
}

// Listener patches a listener. kept is false for one that is removed. Filter chains of which Envoy
// would refuse what patches make of them are closed (see held), and returned.
func (s *Set) Listener(c Context, body []byte) (out []byte, kept bool, spoilt []SpoiltChain) {
	if len(s.all) == 0 {
		return body, true, nil
	}
	m := &listener.Listener{}
	if proto.Unmarshal(body, m) != nil {
		return body, true, nil
	}
	p := listenerPatcher{Set: s, context: c, listener: m, plain: map[*listener.FilterChain]*listener.FilterChain{}}
	if !p.whole() {
		return nil, false, nil
	}
	if out, err := encode.TryPatched(m); err == nil {
		return out, true, nil
	}
	before := &listener.Listener{}
	if err := proto.Unmarshal(body, before); err != nil {
		panic(err) // it was read above
	}
	spoilt = p.close(before)
	return encode.Patched(p.listener), true, spoilt
}

// close closes what Envoy would refuse of a patched listener, which was before as it is without
// patches.
func (l *listenerPatcher) close(before *listener.Listener) []SpoiltChain {
	var out []SpoiltChain
	m := l.listener
	chains, last := m.FilterChains, m.DefaultFilterChain
	m.FilterChains, m.DefaultFilterChain = nil, nil
	if err := envoyrules.CheckAll(m); err != nil {
		out = append(out, SpoiltChain{nil, err})
		before.FilterChains, before.DefaultFilterChain = nil, nil
		l.listener, m = before, before
		held.Listener(m)
	}
	alone := func(c *listener.FilterChain) error {
		return envoyrules.CheckAll(&listener.Listener{Name: m.Name, Address: m.Address, FilterChains: []*listener.FilterChain{c}})
	}
	taken := envoyrules.Connections{}
	for _, c := range chains {
		err := alone(c)
		if err == nil {
			err = taken.Claim(c.FilterChainMatch)
		}
		if err != nil {
			out = append(out, SpoiltChain{c, err})
			if was := l.plain[c]; was != nil {
				c = was
			}
			c = held.Chain(c)
			if alone(c) != nil || taken.Claim(c.FilterChainMatch) != nil {
				continue
			}
		}
		m.FilterChains = append(m.FilterChains, c)
	}
	if last != nil {
		if err := alone(last); err != nil {
			out = append(out, SpoiltChain{last, err})
			last = held.Chain(last)
		}
		m.DefaultFilterChain = last
	}
	return out
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
	// plain are filter chains as they are without patches: their match and name.
	plain map[*listener.FilterChain]*listener.FilterChain
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
	for _, c := range l.listener.FilterChains {
		l.plain[c] = &listener.FilterChain{Name: c.Name, FilterChainMatch: proto.CloneOf(c.FilterChainMatch)}
	}
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
