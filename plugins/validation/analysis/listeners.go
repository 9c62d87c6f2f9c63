package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	networking "istio.io/api/networking/v1alpha3"
)

const listenerClash = "COX3013"

// Ports that sidecars have for themselves, where the mesh's settings don't say others.
const outboundPort, inboundPort, statusPort, metricsPort = 15001, 15006, 15021, 15090

// dialled is where sidecars listen for a service's port, for clients in a namespace; * for all.
// address is empty for every address.
type dialled struct {
	scope, address string
	port           uint32
}

// sort is what a sidecar can tell connections of a protocol apart by.
type sort int

const (
	// byHost: requests name their hosts; byName: TLS hellos do; byAddress: nothing does.
	byHost sort = iota
	byName
	byAddress
)

func sortOf(protocol string) sort {
	switch hosts.Protocol(protocol) {
	case "HTTP", "HTTP2", "GRPC", "GRPC-WEB", "HTTP_PROXY":
		return byHost
	case "TLS", "HTTPS":
		return byName
	}
	return byAddress
}

// listeners finds ports of ServiceEntries that sidecars can't tell from those of others, so that
// one of them is not served: at the same address, of the same workload's port, or at a port that
// sidecars have for themselves.
func listeners(w *world) {
	// claimed are addresses whose connections don't go to where requests do.
	opaque, claimed, requests := map[dialled][]*Resource{}, map[dialled][]*Resource{}, map[dialled][]*Resource{}
	targets := map[netip.AddrPort]map[bool][]*Resource{}
	for _, e := range of[*networking.ServiceEntry](w) {
		if len(e.spec.Hosts) == 0 {
			continue // its own fault
		}
		for i, p := range e.spec.Ports {
			if hosts.Protocol(p.GetProtocol()) == udp || p.GetNumber() == 0 {
				continue
			}
			kind := sortOf(p.GetProtocol())
			w.ownPort(e, i, kind)
			addresses := e.spec.Addresses
			if len(addresses) == 0 {
				addresses = []string{""}
			}
			for _, scope := range istio.Export(e.spec.ExportTo, w.mesh.GetDefaultServiceExportTo(), e.Namespace) {
				for _, a := range addresses {
					at := dialled{scope, a, p.Number}
					if kind == byAddress {
						opaque[at] = append(opaque[at], e.Resource)
					}
					switch {
					case a == "": // what is no request is told from requests by looking at it
					case kind == byHost:
						requests[at] = append(requests[at], e.Resource)
					default:
						claimed[at] = append(claimed[at], e.Resource)
					}
				}
			}
		}
		noteTargets(e, targets)
	}
	w.sameAddress(opaque)
	w.claims(claimed, requests)
	w.sameTarget(targets)
}

// ownPort reports a port at every address that a sidecar has for itself.
func (w *world) ownPort(e item[*networking.ServiceEntry], i int, kind sort) {
	if len(e.spec.Addresses) > 0 && kind != byHost {
		return
	}
	own := []uint32{
		uint32(cmp.Or(w.mesh.GetProxyListenPort(), outboundPort)),
		uint32(cmp.Or(w.mesh.GetProxyInboundListenPort(), inboundPort)), statusPort, metricsPort,
	}
	if n := e.spec.Ports[i].GetNumber(); slices.Contains(own, n) {
		w.report(e.Resource, finding.Warnf(listenerClash, fmt.Sprintf("spec.ports[%d].number", i),
			"sidecars listen at port %d themselves: they don't serve it", n).WithHint("give it another port"))
	}
}

// inOrder are places, in order.
func inOrder(of map[dialled][]*Resource) []dialled {
	return slices.SortedFunc(maps.Keys(of), func(a, b dialled) int {
		return cmp.Or(cmp.Compare(a.scope, b.scope), cmp.Compare(a.address, b.address), cmp.Compare(a.port, b.port))
	})
}

// reaching are those of a place that clients of its namespace see.
func reaching(of map[dialled][]*Resource, at dialled) []*Resource {
	if at.scope == istio.Everywhere {
		return slices.Clone(of[at])
	}
	return slices.Concat(of[at], of[dialled{istio.Everywhere, at.address, at.port}])
}

// sameAddress reports ports at the same address that nothing tells apart.
func (w *world) sameAddress(opaque map[dialled][]*Resource) {
	for _, at := range inOrder(opaque) {
		where := fmt.Sprintf("%s:%d", at.address, at.port)
		if at.address == "" {
			where = fmt.Sprintf("port %d of every address", at.port)
		}
		clash(w, apart(reaching(opaque, at)), func(names string) finding.Finding {
			return finding.Warnf(listenerClash, "spec.ports",
				"ServiceEntries %s have connections to %s, which sidecars can't tell apart: "+
					"they go to one of them, of the client's namespace before others, the oldest first", few(names), where).
				WithHint("give each addresses of its own, or another port")
		})
	}
}

// claims reports requests to addresses whose connections another one has.
func (w *world) claims(claimed, requests map[dialled][]*Resource) {
	for _, at := range inOrder(requests) {
		everywhere := reaching(claimed, at)
		for _, r := range requests[at] {
			for _, other := range everywhere {
				if apart([]*Resource{other, r}) != nil {
					w.reportOnce(r, finding.Warnf(listenerClash, "spec.ports",
						"connections to %s:%d go to ServiceEntry %s/%s, which has them for TCP "+
							"or TLS: requests to that address don't come here", at.address, at.port, other.Namespace, other.Name).
						WithHint("give each addresses of its own"))
					break
				}
			}
		}
	}
}

// apart returns ServiceEntries that aren't all of one host; nil if they are: these are one service.
func apart(list []*Resource) []*Resource {
	host := func(r *Resource) string { return strings.ToLower(r.Spec.(*networking.ServiceEntry).Hosts[0]) }
	if !slices.ContainsFunc(list, func(r *Resource) bool { return host(r) != host(list[0]) }) {
		return nil
	}
	return list
}

// noteTargets notes at which ports of workloads a ServiceEntry's connections end, as requests or as
// anything else.
func noteTargets(e item[*networking.ServiceEntry], to map[netip.AddrPort]map[bool][]*Resource) {
	for _, end := range e.spec.Endpoints {
		address, err := netip.ParseAddr(end.GetAddress())
		if err != nil {
			continue
		}
		for _, p := range e.spec.Ports {
			target := cmp.Or(end.Ports[p.GetName()], p.GetTargetPort(), p.GetNumber())
			if target == 0 || target > 65535 || hosts.Protocol(p.GetProtocol()) == udp || p.GetProtocol() == "" {
				continue
			}
			at := netip.AddrPortFrom(address, uint16(target))
			if to[at] == nil {
				to[at] = map[bool][]*Resource{}
			}
			http := sortOf(p.Protocol) == byHost
			to[at][http] = append(to[at][http], e.Resource)
		}
	}
}

// sameTarget reports ServiceEntries that disagree about what a port of a workload speaks.
func (w *world) sameTarget(targets map[netip.AddrPort]map[bool][]*Resource) {
	for _, at := range slices.SortedFunc(maps.Keys(targets), netip.AddrPort.Compare) {
		if kinds := targets[at]; len(kinds) > 1 {
			clash(w, apart(slices.Concat(slices.Collect(maps.Values(kinds))...)), func(names string) finding.Finding {
				return finding.Warnf(listenerClash, "spec.ports", "ServiceEntries %s lead to %s, some for HTTP and some not: "+
					"a sidecar there does what the oldest says", few(names), at).WithHint("say the same protocol in all")
			})
		}
	}
}

// few shortens a list of names.
func few(names string) string {
	const most = 5
	list := strings.Split(names, ",")
	if len(list) <= most {
		return names
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ","), len(list)-most)
}
