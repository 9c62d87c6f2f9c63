package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	networking "istio.io/api/networking/v1alpha3"
)

const (
	meshHostClash    = "IST0109"
	gatewayClash     = "IST0145"
	hostNotInGateway = "IST0132"
	sameCertificate  = "IST0138"
	gatewayHostClash = "COX3002"
	unusedGateway    = "COX3003"
)

// hostIn is a host, by its whole name, in a namespace; * for all.
type hostIn struct{ scope, host string }

// meshHosts finds VirtualServices that say something of the same host for sidecars of the same
// namespaces. What is for one namespace meets what is for all of them where the hosts overlap, as
// `istioctl analyze` has it.
func meshHosts(w *world) {
	by := map[hostIn][]*Resource{}
	for _, v := range of[*networking.VirtualService](w) {
		if len(v.spec.Gateways) > 0 && !slices.Contains(v.spec.Gateways, meshGateway) {
			continue
		}
		for _, host := range v.spec.Hosts {
			for _, scope := range w.seenIn(v) {
				key := hostIn{scope, fullName(host, v.Namespace)}
				by[key] = append(by[key], v.Resource)
			}
		}
	}
	var everywhere []hostIn
	for key := range by {
		if key.scope == "*" {
			everywhere = append(everywhere, key)
		}
	}
	order := func(a, b hostIn) int { return cmp.Or(cmp.Compare(a.scope, b.scope), cmp.Compare(a.host, b.host)) }
	for _, key := range slices.SortedFunc(maps.Keys(by), order) {
		list := slices.Clone(by[key])
		if key.scope != "*" {
			for _, other := range everywhere {
				if istio.Overlaps(key.host, other.host) {
					list = append(list, by[other]...)
				}
			}
		}
		clash(w, list, meshHostClash, func(names string) finding.Finding {
			return finding.Errorf(meshHostClash, "spec.hosts", "The VirtualServices %s associated with mesh gateway define the same host %s/%s "+
				"which can lead to undefined behavior. This can be fixed by merging the conflicting VirtualServices into a single resource", names, key.scope, key.host)
		})
	}
}

// clash reports a finding about each of several resources, once.
func clash(w *world, list []*Resource, code string, make func(names string) finding.Finding) {
	slices.SortFunc(list, func(a, b *Resource) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	list = slices.Compact(list)
	if len(list) < 2 {
		return
	}
	var names []string
	for _, r := range list {
		names = append(names, r.Namespace+"/"+r.Name)
	}
	f := make(strings.Join(names, ","))
	for _, r := range list {
		if !slices.ContainsFunc(w.found, func(had Result) bool { return had.Resource == r && had.Code == code && had.Message == f.Message }) {
			w.report(r, f)
		}
	}
}

// gatewayHosts finds hosts for which several VirtualServices are bound to one gateway: their routes
// are merged, in order of age.
func gatewayHosts(w *world) {
	by := map[string][]*Resource{}
	for _, v := range of[*networking.VirtualService](w) {
		for _, name := range v.spec.Gateways {
			g := w.gateway(v.Namespace, name)
			if name == meshGateway || g == nil {
				continue
			}
			for _, host := range v.spec.Hosts {
				if key := fullName(host, v.Namespace) + " " + g.Namespace + "/" + g.Name; serves(g, host, v.Namespace) {
					by[key] = append(by[key], v.Resource)
				}
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(by)) {
		host, gateway, _ := strings.Cut(key, " ")
		clash(w, by[key], gatewayHostClash, func(names string) finding.Finding {
			return finding.Warnf(gatewayHostClash, "spec.hosts", "VirtualServices %s define routes for host %s at gateway %s; which of them comes first depends on their age", names, host, gateway).
				WithHint("merge them, or let one delegate to the others")
		})
	}
}

// gatewayServers finds hosts that the gateways of a VirtualService don't serve.
func gatewayServers(w *world) {
	for _, v := range of[*networking.VirtualService](w) {
		for i, name := range v.spec.Gateways {
			g := w.gateway(v.Namespace, name)
			if name == meshGateway || g == nil {
				continue
			}
			var lost []string
			for _, host := range v.spec.Hosts {
				if !serves(g, host, v.Namespace) {
					lost = append(lost, host)
				}
			}
			if len(lost) > 0 {
				w.report(v.Resource, finding.Warnf(hostNotInGateway, fmt.Sprintf("spec.gateways[%d]", i),
					"one or more host %v defined in VirtualService %s/%s not found in Gateway %s", lost, v.Namespace, v.Name, name).
					WithHint("add them to the hosts of one of its servers"))
			}
		}
	}
}

// serves reports whether a gateway has a server for some name that a host stands for, open to a
// namespace.
func serves(g *item[*networking.Gateway], host, namespace string) bool {
	for _, s := range g.spec.Servers {
		for _, each := range s.GetHosts() {
			from, name, both := strings.Cut(each, "/")
			if !both {
				from, name = "*", each
			}
			open := from == "*" || from == namespace || from == "." && g.Namespace == namespace
			if open && istio.OverlapsFold(name, host) {
				return true
			}
		}
	}
	return false
}

// listening is a server's place: who listens, where, for what.
type listening struct {
	selector, bind, host string
	port                 uint32
}

// conflictingGateways finds servers of several gateways for the same workloads, port and host.
func conflictingGateways(w *world) {
	by := map[listening][]*Resource{}
	for _, g := range of[*networking.Gateway](w) {
		for _, s := range g.spec.Servers {
			for _, host := range s.GetHosts() {
				if _, name, both := strings.Cut(host, "/"); both {
					host = name
				}
				key := listening{show(g.spec.Selector), s.GetBind(), strings.ToLower(host), s.GetPort().GetNumber()}
				by[key] = append(by[key], g.Resource)
			}
		}
	}
	for key, list := range by {
		clash(w, list, gatewayClash, func(names string) finding.Finding {
			return finding.Errorf(gatewayClash, "spec.servers", "Conflict with gateways %s (workload selector %s, port %d, hosts %s)", names, key.selector, key.port, key.host).
				WithHint("only one of them is served; merge them, or give them other hosts or ports")
		})
	}
}

// unusedGateways finds gateways that no VirtualService names: they answer 404 to everything.
func unusedGateways(w *world) {
	used := map[string]bool{}
	for _, v := range of[*networking.VirtualService](w) {
		for _, name := range v.spec.Gateways {
			if g := w.gateway(v.Namespace, name); g != nil {
				used[g.Namespace+"/"+g.Name] = true
			}
		}
	}
	for _, g := range of[*networking.Gateway](w) {
		if !used[g.Namespace+"/"+g.Name] && !slices.ContainsFunc(g.spec.Servers, passesThrough) {
			w.report(g.Resource, finding.Warnf(unusedGateway, "metadata.name", "no VirtualService is bound to gateway %s/%s: it has no routes", g.Namespace, g.Name).
				WithHint("name it in spec.gateways of a VirtualService"))
		}
	}
}

// passesThrough reports whether a server needs no routes.
func passesThrough(s *networking.Server) bool {
	return s.GetTls().GetHttpsRedirect() || s.GetTls().GetMode() == networking.ServerTLSSettings_AUTO_PASSTHROUGH && s.Tls != nil
}

// duplicateCertificates finds gateways of the same workloads that share a certificate: a client
// that reuses an HTTP/2 connection for a host of another one gets 404.
func duplicateCertificates(w *world) {
	by := map[string][]*Resource{}
	for _, g := range of[*networking.Gateway](w) {
		for _, s := range g.spec.Servers {
			if name := s.GetTls().GetCredentialName(); name != "" {
				key := show(g.spec.Selector) + " " + name
				by[key] = append(by[key], g.Resource)
			}
		}
	}
	for _, list := range by {
		clash(w, list, sameCertificate, func(names string) finding.Finding {
			return finding.Warnf(sameCertificate, "spec.servers", "Duplicate certificate in multiple gateways %s may cause 404s if clients re-use HTTP2 connections", names).
				WithHint("serve all hosts of a certificate by one gateway")
		})
	}
}
