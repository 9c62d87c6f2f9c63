package derive

import (
	"slices"

	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

// conflicts are the listeners that lose against earlier ones, with the reason, by the owner's key
// and kind.
type conflicts map[string]map[gateway.SectionName]gateway.ListenerConditionReason

// findConflicts compares each listener with those before it that are served: the Gateway's own
// come first, then those of ListenerSets by age. Source: Gateway API, ListenerSet, "Listener
// precedence".
func (f *fronting) findConflicts(sets []*setObject) conflicts {
	out := conflicts{}
	if !f.class.sets {
		return out
	}
	var accepted []gateway.Listener
	add := func(by string, l gateway.Listener) {
		at := slices.IndexFunc(accepted, func(o gateway.Listener) bool { return f.share(l, o) && clash(l, o) })
		if at < 0 {
			accepted = append(accepted, l)
			return
		}
		if out[by] == nil {
			out[by] = map[gateway.SectionName]gateway.ListenerConditionReason{}
		}
		out[by][l.Name] = clashReason(l, accepted[at])
	}
	for _, l := range f.of.Spec.Listeners {
		add(f.of.Row.Key+"/Gateway", l)
	}
	for _, s := range sets {
		for _, entry := range s.Spec.Listeners {
			l, _ := listenerOf(entry)
			add(s.Row.Key+"/ListenerSet", l)
		}
	}
	return out
}

// share reports whether two listeners may want the same: where datagrams are served, a port for
// them is another one than that for connections.
func (f *fronting) share(a, b gateway.Listener) bool {
	return !f.config.Beyond || (a.Protocol == gateway.UDPProtocolType) == (b.Protocol == gateway.UDPProtocolType)
}

func connections(p gateway.ProtocolType) bool {
	return p == gateway.TCPProtocolType || p == gateway.UDPProtocolType
}

func named(p gateway.ProtocolType) bool {
	return p == gateway.HTTPProtocolType || p == gateway.HTTPSProtocolType || p == gateway.TLSProtocolType
}

// clash reports whether two listeners of a Gateway can't be told apart: those with host names are,
// by these.
func clash(a, b gateway.Listener) bool {
	switch {
	case a.Port != b.Port:
		return false
	case connections(a.Protocol) && (connections(b.Protocol) || named(b.Protocol)), named(a.Protocol) && connections(b.Protocol):
		return true
	case named(a.Protocol) && named(b.Protocol):
		return hostOf(a) == hostOf(b)
	}
	return a.Protocol == b.Protocol
}

func hostOf(l gateway.Listener) string {
	if h := string(or(l.Hostname, "")); h != "" {
		return h
	}
	return "*"
}

func clashReason(a, b gateway.Listener) gateway.ListenerConditionReason {
	if a.Protocol != b.Protocol || connections(a.Protocol) && connections(b.Protocol) {
		return gateway.ListenerReasonProtocolConflict
	}
	return gateway.ListenerReasonHostnameConflict
}
