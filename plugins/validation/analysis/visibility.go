package analysis

import (
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	networking "istio.io/api/networking/v1alpha3"
)

const hiddenHost = "COX3007"

// hiddenHosts finds Sidecars without a selector that import a VirtualService's host but not where
// its routes lead: requests have no cluster then.
func hiddenHosts(w *world) {
	for _, s := range of[*networking.Sidecar](w) {
		if len(s.spec.Egress) == 0 {
			continue
		}
		for _, v := range of[*networking.VirtualService](w) {
			if !w.imported(s, v) {
				continue
			}
			for _, d := range destinations(v.spec) {
				w.hidden(s, v, d)
			}
		}
	}
}

// seenIn are the namespaces in which a VirtualService is seen; * for all.
func (w *world) seenIn(v item[*networking.VirtualService]) []string {
	return istio.Export(v.spec.ExportTo, w.mesh.GetDefaultVirtualServiceExportTo(), v.Namespace)
}

// imported reports whether a Sidecar's clients get a VirtualService of their own namespace, for a
// host that they import.
func (w *world) imported(s item[*networking.Sidecar], v item[*networking.VirtualService]) bool {
	if len(v.spec.Gateways) > 0 && !slices.Contains(v.spec.Gateways, meshGateway) {
		return false
	}
	visible := slices.ContainsFunc(w.seenIn(v), func(n string) bool { return n == "*" || n == s.Namespace })
	return visible && slices.ContainsFunc(v.spec.Hosts, func(host string) bool { return imports(s, v.Namespace, fullName(host, v.Namespace)) })
}

// imports reports whether a listener of a Sidecar imports a host of a namespace.
func imports(s item[*networking.Sidecar], namespace, host string) bool {
	for _, l := range s.spec.Egress {
		for _, each := range l.GetHosts() {
			from, name, _ := strings.Cut(each, "/")
			if from == "." {
				from = s.Namespace
			}
			if (from == "*" || from == namespace) && (name == "*" || istio.OverlapsFold(name, host)) {
				return true
			}
		}
	}
	return false
}

func (w *world) hidden(s item[*networking.Sidecar], v item[*networking.VirtualService], d *networking.Destination) {
	services := w.lookup(d.GetHost(), v.Namespace)
	seen := slices.ContainsFunc(services, func(service Service) bool { return imports(s, service.Namespace, strings.ToLower(service.Host)) })
	if len(services) == 0 || seen {
		return
	}
	f := finding.Warnf(hiddenHost, "spec.egress", "VirtualService %s/%s is imported and routes to %s, which no "+
		"egress listener imports: those requests fail", v.Namespace, v.Name, d.Host).
		WithHint("add %s/%s to spec.egress.hosts", services[0].Namespace, services[0].Host)
	w.reportOnce(s.Resource, f)
}
