package dns

import (
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/coxswain-mesh/coxswain/plugins/internal/nametable"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
)

// names are the names of services. Clients look them up while they change.
type names struct {
	mu sync.RWMutex // guards known, short and namespaces
	// known are by name in lower case, without the dot at its end; short are forms of Kubernetes'
	// names, by SHORT.NAMESPACE, for which a name that is known counts more.
	known, short map[string][]meaning
	// namespaces are those of clients, by address.
	namespaces map[netip.Addr]string
	// search are domains that clients put behind names, each with a dot before it.
	search []string
	// cluster is .svc.DOMAIN, before which a search domain may have a namespace.
	cluster string
}

// meaning is what a name means to those that see it: namespaces, or istio.Everywhere.
type meaning struct {
	// of is the service's key.
	of    string
	seen  []string
	entry nametable.Entry
	// four and six are its addresses.
	four, six []netip.Addr
}

// found is what a name means to one client.
type found struct {
	// name is the service's own, other than the client's where a search domain stood behind it.
	name      string
	four, six []netip.Addr
}

// namespace of a client; the config's where nobody knows the address.
func (n *names) namespace(client netip.Addr, otherwise string) string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if is, ok := n.namespaces[client.Unmap()]; ok && is != "" {
		return is
	}
	return otherwise
}

// find looks a name up for a client of a namespace ("": nobody knows).
func (n *names) find(name, namespace string) (found, bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if f, ok := n.lookUp(name, namespace); ok {
		return f, true
	}
	for _, s := range n.search {
		if rest, ok := strings.CutSuffix(name, s); ok && rest != "" {
			if f, ok := n.expanded(rest, s, namespace); ok {
				return f, true
			}
		}
	}
	return found{}, false
}

// expanded looks up a name that a search domain stood behind: of .svc.DOMAIN with a namespace
// before it.
func (n *names) expanded(rest, domain, namespace string) (found, bool) {
	if f, ok := n.lookUp(rest, namespace); ok {
		return f, true
	}
	if i := strings.LastIndexByte(rest, '.'); domain == n.cluster && i > 0 {
		return n.lookUp(rest[:i], namespace)
	}
	return found{}, false
}

// lookUp finds a name as it is, without search domains.
func (n *names) lookUp(name, namespace string) (found, bool) {
	if f, ok := merged(name, n.known[name], namespace); ok {
		return f, true
	}
	if f, ok := merged(name, n.short[strings.TrimSuffix(name, ".svc")], namespace); ok {
		return f, true
	}
	if namespace != "" {
		if f, ok := merged(name, n.short[name+"."+namespace], namespace); ok {
			return f, true
		}
	}
	for rest := name; ; {
		i := strings.IndexByte(rest, '.')
		if i < 0 {
			return found{}, false
		}
		rest = rest[i+1:]
		if f, ok := merged(name, n.known["*."+rest], namespace); ok {
			return f, true
		}
	}
}

// merged is what those meanings of a name make together that a namespace sees.
func merged(name string, all []meaning, namespace string) (found, bool) {
	seen := all
	for i := range all {
		if !all[i].isSeen(namespace) {
			seen = slices.DeleteFunc(slices.Clone(all), func(m meaning) bool { return !m.isSeen(namespace) })
			break
		}
	}
	switch len(seen) {
	case 0:
		return found{}, false
	case 1:
		return found{name, seen[0].four, seen[0].six}, true
	}
	entries := make([]nametable.Entry, len(seen))
	for i, m := range seen {
		entries[i] = m.entry
	}
	four, six := split(nametable.Merge(entries).IPs)
	return found{name, four, six}, true
}

func (m *meaning) isSeen(namespace string) bool {
	return slices.ContainsFunc(m.seen, func(s string) bool { return s == istio.Everywhere || s == namespace })
}

// split orders addresses by family.
func split(ips []string) (four, six []netip.Addr) {
	for _, text := range ips {
		ip, err := netip.ParseAddr(text)
		switch ip = ip.Unmap(); {
		case err != nil:
		case ip.Is4():
			four = append(four, ip)
		default:
			six = append(six, ip.WithZone(""))
		}
	}
	return four, six
}
