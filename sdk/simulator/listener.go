package simulator

import (
	"net/netip"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
)

// accept finds the listener that accepts the connection, and the one that it hands it over to, if
// it does. Each runs its listener filters.
//
// https://www.envoyproxy.io/docs/envoy/latest/api-v3/config/listener/v3/listener.proto
// (use_original_dst, bind_to_port)
func (w *walk) accept() *listenerv3.Listener {
	l := w.listening(w.local, bound)
	if l == nil {
		w.end(Closed, "no listener has %s", w.local)
		return nil
	}
	w.choose(l, "it listens on "+w.local.String())
	restore := l.GetUseOriginalDst().GetValue()
	w.inspect(l, restore)
	if !restore {
		return l
	}
	next := w.listening(w.local, func(*listenerv3.Listener) bool { return true })
	switch {
	case next == nil:
		w.step("listener", l.Name, "it keeps the connection: no listener has the original destination %s", w.local)
		return l
	case next == l:
		return l
	}
	w.choose(next, "it is handed the connection for the original destination "+w.local.String())
	w.inspect(next, false)
	return next
}

func (w *walk) choose(l *listenerv3.Listener, why string) {
	w.out.Way.Listener = l.Name
	w.step("listener", l.Name, "%s", why)
}

// listening is the listener with an address, or else the one with its port on all addresses.
func (w *walk) listening(at netip.AddrPort, fits func(*listenerv3.Listener) bool) *listenerv3.Listener {
	var wildcard *listenerv3.Listener
	for _, l := range w.Listeners {
		if !fits(l) {
			continue
		}
		for _, a := range addresses(l) {
			switch {
			case a.AddrPort == at:
				return l
			case wildcard == nil && a.all(at):
				wildcard = l
			}
		}
	}
	return wildcard
}

// address of a listener. IPv6 on all addresses may mean those of IPv4, too.
type address struct {
	netip.AddrPort
	both bool
}

// all reports whether it is on all addresses, among them this one.
func (a address) all(at netip.AddrPort) bool {
	return a.Addr().IsUnspecified() && a.Port() == at.Port() && (a.both || a.Addr().Is4() == at.Addr().Is4())
}

func addresses(l *listenerv3.Listener) (all []address) {
	list := []*corev3.Address{l.GetAddress()}
	for _, a := range l.AdditionalAddresses {
		list = append(list, a.GetAddress())
	}
	for _, a := range list {
		s := a.GetSocketAddress()
		ip, err := netip.ParseAddr(s.GetAddress())
		if err == nil && s.GetProtocol() == corev3.SocketAddress_TCP {
			all = append(all, address{netip.AddrPortFrom(ip, uint16(s.GetPortValue())), s.GetIpv4Compat()})
		}
	}
	return all
}
