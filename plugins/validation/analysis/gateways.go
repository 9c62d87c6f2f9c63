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
	shadowed         = "IST0140"
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
		clash(w, list, func(names string) finding.Finding {
			return finding.Errorf(meshHostClash, "spec.hosts", "The VirtualServices %s associated with mesh gateway define the same host %s/%s "+
				"which can lead to undefined behavior. This can be fixed by merging the conflicting VirtualServices "+
				"into a single resource", names, key.scope, key.host)
		})
	}
}

// clash reports a finding about each of several resources, once.
func clash(w *world, list []*Resource, make func(names string) finding.Finding) {
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
		w.reportOnce(r, f)
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
		clash(w, by[key], func(names string) finding.Finding {
			return finding.Warnf(gatewayHostClash, "spec.hosts", "VirtualServices %s define routes for host %s at "+
				"gateway %s; which of them comes first depends on their age", names, host, gateway).
				WithHint("merge them, or let one delegate to the others")
		})
	}
}

// gatewayServers finds gateways that serve none of the hosts of a VirtualService that names them,
// and hosts that none of its gateways serves.
func gatewayServers(w *world) {
	for _, v := range of[*networking.VirtualService](w) {
		served := map[string]bool{}
		for _, name := range v.spec.Gateways {
			g := w.gateway(v.Namespace, name)
			for _, host := range v.spec.Hosts {
				served[host] = served[host] || name == meshGateway || isDerived(name) || g != nil && serves(g, host, v.Namespace)
			}
		}
		for i, name := range v.spec.Gateways {
			if name == meshGateway || isDerived(name) {
				continue
			}
			g, serving := w.gateway(v.Namespace, name), false
			var lost []string
			for _, host := range v.spec.Hosts {
				here := g != nil && serves(g, host, v.Namespace)
				serving = serving || here
				if !here && !served[host] {
					lost = append(lost, host)
				}
			}
			if !serving {
				lost = v.spec.Hosts
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

// listening is a server's place: where it listens, for what.
type listening struct {
	bind, host string
	port       uint32
}

// conflictingGateways finds servers of several gateways for the same workloads, port and host: of
// gateways with the same selector, and of those whose selectors select the same workload.
func conflictingGateways(w *world) {
	by := map[listening]map[string][]*Resource{} // by selector
	selectors := map[string]map[string]string{}
	for _, g := range of[*networking.Gateway](w) {
		selector := show(g.spec.Selector)
		selectors[selector] = g.spec.Selector
		for _, s := range g.spec.Servers {
			for _, host := range s.GetHosts() {
				if _, name, both := strings.Cut(host, "/"); both {
					host = name
				}
				key := listening{s.GetBind(), strings.ToLower(host), s.GetPort().GetNumber()}
				if by[key] == nil {
					by[key] = map[string][]*Resource{}
				}
				by[key][selector] = append(by[key][selector], g.Resource)
			}
		}
	}
	rivals := w.meeting(selectors)
	for key, group := range by {
		if key.port == 0 {
			continue // its own fault
		}
		for selector, list := range group {
			w.conflict(key, selector, list)
			for _, others := range rivals[selector] {
				all := slices.Clone(list)
				for _, other := range others {
					if other != selector {
						all = append(all, group[other]...)
					}
				}
				if len(all) > len(list) {
					w.conflict(key, selector, all)
				}
			}
		}
	}
}

func (w *world) conflict(at listening, selector string, list []*Resource) {
	clash(w, list, func(names string) finding.Finding {
		return finding.Errorf(gatewayClash, "spec.servers",
			"Conflict with gateways %s (workload selector %s, port %d, hosts %s)", names, selector, at.port, at.host).
			WithHint("only one of them is served; merge them, or give them other hosts or ports")
	})
}

// meeting finds selectors that select the same workload: for each, the groups that it is in.
func (w *world) meeting(selectors map[string]map[string]string) map[string][][]string {
	by := map[int][]string{}
	for _, name := range slices.Sorted(maps.Keys(selectors)) {
		for i := range w.selected("", selectors[name]) {
			by[i] = append(by[i], name)
		}
	}
	out, had := map[string][][]string{}, map[string]bool{}
	for _, group := range by {
		key := strings.Join(group, ";")
		if len(group) < 2 || had[key] {
			continue
		}
		had[key] = true
		for _, name := range group {
			out[name] = append(out[name], group)
		}
	}
	return out
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
			w.report(g.Resource, finding.Warnf(unusedGateway, "metadata.name",
				"no VirtualService is bound to gateway %s/%s: it has no routes", g.Namespace, g.Name).
				WithHint("name it in spec.gateways of a VirtualService"))
		}
	}
}

// passesThrough reports whether a server needs no routes.
func passesThrough(s *networking.Server) bool {
	return s.GetTls().GetHttpsRedirect() || s.GetTls().GetMode() == networking.ServerTLSSettings_AUTO_PASSTHROUGH && s.Tls != nil
}

// duplicateCertificates finds gateways that share a certificate with another of the same workloads,
// or of some of them: a client that reuses an HTTP/2 connection for a host of the other one gets
// 404.
func duplicateCertificates(w *world) {
	type shared struct{ credential, certificate, key string }
	by := map[shared][]item[*networking.Gateway]{}
	for _, g := range of[*networking.Gateway](w) {
		for _, s := range g.spec.Servers {
			key := shared{credential: s.GetTls().GetCredentialName()}
			if key.credential == "" {
				key.certificate, key.key = s.GetTls().GetServerCertificate(), s.GetTls().GetPrivateKey()
				if key.certificate == "" || key.key == "" {
					continue
				}
			}
			if list := by[key]; len(list) == 0 || list[len(list)-1].Resource != g.Resource {
				by[key] = append(list, g)
			}
		}
	}
	for _, all := range by {
		pairs := map[string][]item[*networking.Gateway]{} // by each label of their selectors
		for _, g := range all {
			for k, v := range g.spec.Selector {
				pairs[k+"="+v] = append(pairs[k+"="+v], g)
			}
		}
		for _, g := range all {
			var names []string
			list := all
			for k, v := range g.spec.Selector {
				if few := pairs[k+"="+v]; len(few) < len(list) {
					list = few
				}
			}
			for _, other := range list {
				if other.Resource != g.Resource && istio.Selects(g.spec.Selector, other.spec.Selector) {
					if names = append(names, fullOf(other.Resource)); len(names) > 10 {
						break
					}
				}
			}
			if len(names) > 0 {
				slices.Sort(names)
				w.reportOnce(g.Resource, finding.Warnf(sameCertificate, "spec.servers",
					"Duplicate certificate in multiple gateways %s may cause 404s if clients re-use HTTP2 "+
						"connections",
					strings.Join(append([]string{fullOf(g.Resource)}, atMost(names, 10)...), ",")).WithHint("serve all hosts of a certificate by one gateway"))
			}
		}
	}
}

// shadowedRoutes finds routes at gateways to a host for which another VirtualService, which these
// don't use, chooses subsets.
func shadowedRoutes(w *world) {
	by := map[string][]*Resource{}
	for _, v := range of[*networking.VirtualService](w) {
		own := map[string]bool{}
		for _, host := range v.spec.Hosts {
			own[fullName(host, v.Namespace)] = true
		}
		for _, r := range v.spec.Http {
			for _, d := range r.GetRoute() {
				host := fullName(d.GetDestination().GetHost(), v.Namespace)
				if d.GetDestination().GetSubset() != "" && own[host] && !slices.Contains(by[host], v.Resource) {
					by[host] = append(by[host], v.Resource)
				}
			}
		}
	}
	for _, v := range of[*networking.VirtualService](w) {
		if len(v.spec.Gateways) == 0 {
			continue
		}
		for i, r := range v.spec.Http {
			for j, d := range r.GetRoute() {
				to := d.GetDestination()
				if to.GetSubset() != "" {
					continue
				}
				for _, other := range by[fullName(to.GetHost(), v.Namespace)] {
					if other != v.Resource {
						w.reportOnce(v.Resource, finding.Warnf(shadowed, fmt.Sprintf("spec.http[%d].route[%d].destination", i, j),
							"subsets that VirtualService %s chooses for %s have no effect on these requests: a gateway uses the routes of its own host alone",
							fullOf(other), to.GetHost()).
							WithHint("name the subset here, too"))
					}
				}
			}
		}
	}
}
