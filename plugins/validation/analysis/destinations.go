package analysis

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	networking "istio.io/api/networking/v1alpha3"
)

const (
	notFound        = "IST0101"
	portRequired    = "IST0112"
	noSuchPort      = "COX3001"
	unknownHost     = "IST0174"
	emptySubset     = "IST0173"
	internalGateway = "IST0165"
)

// destinations yields where a VirtualService leads, with the fields' paths.
func destinations(v *networking.VirtualService) iter.Seq2[string, *networking.Destination] {
	return func(yield func(string, *networking.Destination) bool) {
		for i, r := range v.Http {
			at := fmt.Sprintf("spec.http[%d]", i)
			for j, d := range r.GetRoute() {
				if !yield(fmt.Sprintf("%s.route[%d].destination", at, j), d.GetDestination()) {
					return
				}
			}
			if r.GetMirror() != nil && !yield(at+".mirror", r.Mirror) {
				return
			}
			for j, m := range r.GetMirrors() {
				if !yield(fmt.Sprintf("%s.mirrors[%d].destination", at, j), m.GetDestination()) {
					return
				}
			}
		}
		for i, r := range v.Tls {
			for j, d := range r.GetRoute() {
				if !yield(fmt.Sprintf("spec.tls[%d].route[%d].destination", i, j), d.GetDestination()) {
					return
				}
			}
		}
		for i, r := range v.Tcp {
			for j, d := range r.GetRoute() {
				if !yield(fmt.Sprintf("spec.tcp[%d].route[%d].destination", i, j), d.GetDestination()) {
					return
				}
			}
		}
	}
}

// missing is Istio's message for a reference to what is not there.
func missing(field, what, name string) finding.Finding {
	return finding.Errorf(notFound, field, "Referenced %s not found: %q", what, name)
}

// references finds routes to unknown hosts and gateways.
func references(w *world) {
	for _, v := range of[*networking.VirtualService](w) {
		for at, d := range destinations(v.spec) {
			services := w.lookup(d.GetHost(), v.Namespace)
			switch {
			case d.GetHost() == "":
			case len(services) == 0:
				w.report(v.Resource, missing(at+".host", "host", d.Host).WithHint("%s", w.hostHint(d.Host, v.Namespace)))
			case !slices.ContainsFunc(services, func(s Service) bool { return s.isSeen(clientsOf(v)...) }):
				w.report(v.Resource, missing(at+".host", "host", d.Host).WithHint("there is such a service, and it is exported to other namespaces alone"))
			}
		}
		for i, name := range v.spec.Gateways {
			w.gatewayReference(v.Resource, fmt.Sprintf("spec.gateways[%d]", i), name)
		}
		for i, r := range v.spec.Http {
			for j, m := range r.GetMatch() {
				for k, name := range m.GetGateways() {
					w.gatewayReference(v.Resource, fmt.Sprintf("spec.http[%d].match[%d].gateways[%d]", i, j, k), name)
				}
			}
		}
	}
	for _, d := range of[*networking.DestinationRule](w) {
		if !istio.IsWildcard(d.spec.Host) && len(w.lookup(d.spec.Host, d.Namespace)) == 0 {
			w.report(d.Resource, finding.Warnf(unknownHost, "spec.host",
				"The host %s defined in the DestinationRule does not match any services in the mesh", d.spec.Host).
				WithHint("%s", w.hostHint(d.spec.Host, d.Namespace)))
		}
	}
}

// clientsOf are the namespaces whose clients a VirtualService is for: those that it is exported to
// by name, or else its own.
func clientsOf(v item[*networking.VirtualService]) []string {
	var list []string
	for _, to := range v.spec.ExportTo {
		switch to {
		case "*", ".":
			list = append(list, v.Namespace)
		default:
			list = append(list, to)
		}
	}
	if len(list) == 0 {
		list = []string{v.Namespace}
	}
	return list
}

// hostHint says what a name was taken for, or which service it is nearly the name of.
func (w *world) hostHint(host, namespace string) string {
	full := istio.Resolve(host, namespace, domain)
	switch like := w.meant(host, namespace); {
	case like != "":
		return "proxies have no such cluster; write " + like
	case full != host:
		return "it means " + full + " here; for a service of another namespace write the whole name"
	}
	return "add a ServiceEntry or a Service for it, or correct the name"
}

func (w *world) gatewayReference(r *Resource, at, name string) {
	if name == meshGateway {
		return
	}
	if isDerived(name) {
		w.report(r, finding.Warnf(internalGateway, at, "it names a Gateway that was made of one of the Gateway API, "+
			"which may have another name tomorrow: %s", name).
			WithHint("use a route of the Gateway API, with the Gateway in parentRefs"))
		return
	}
	if w.gateway(r.Namespace, name) == nil {
		w.report(r, missing(at, "gateway", name).WithHint("write NAMESPACE/NAME for a gateway of another namespace"))
	}
}

// gateway returns the gateway that a reference in a namespace means; nil for none.
func (w *world) gateway(namespace, name string) *item[*networking.Gateway] {
	if !strings.Contains(name, "/") {
		name = namespace + "/" + name
	}
	if g, ok := w.gateways[name]; ok {
		return &g
	}
	return nil
}

// subsets finds routes to subsets that no DestinationRule of the host has.
func subsets(w *world) {
	known := map[string]map[string]bool{}
	var wildcards []string
	for _, d := range of[*networking.DestinationRule](w) {
		host := fullName(d.spec.Host, d.Namespace)
		if known[host] == nil {
			known[host] = map[string]bool{}
			if istio.IsWildcard(host) {
				wildcards = append(wildcards, host)
			}
		}
		for _, s := range d.spec.Subsets {
			known[host][s.GetName()] = true
		}
	}
	for _, v := range of[*networking.VirtualService](w) {
		for at, d := range destinations(v.spec) {
			if d.GetSubset() != "" && !hasSubset(known, wildcards, fullName(d.Host, v.Namespace), d.Subset) {
				w.report(v.Resource, missing(at+".subset", "host+subset in destinationrule", d.Host+"+"+d.Subset).
					WithHint("add the subset to a DestinationRule of the host; requests get 503 until then"))
			}
		}
	}
}

// hasSubset reports whether the rules for a host, or for a wildcard that covers it, have a subset.
func hasSubset(known map[string]map[string]bool, wildcards []string, host, subset string) bool {
	return known[host][subset] || slices.ContainsFunc(wildcards, func(rule string) bool {
		return known[rule][subset] && istio.Covers(rule, host)
	})
}

// destinationPorts finds destinations without a port where the service has several, and with one
// that the service has not.
func destinationPorts(w *world) {
	for _, v := range of[*networking.VirtualService](w) {
		for at, d := range destinations(v.spec) {
			services := w.lookup(d.GetHost(), v.Namespace)
			if len(services) == 0 {
				continue
			}
			var ports []uint32
			for _, s := range services {
				ports = append(ports, s.Ports...)
			}
			slices.Sort(ports)
			ports = slices.Compact(ports)
			number := d.GetPort().GetNumber()
			switch {
			case number == 0 && len(ports) > 1:
				w.report(v.Resource, finding.Errorf(portRequired, at, "This VirtualService routes to a service %q "+
					"that exposes multiple ports %v. Specifying a port in the destination is required to "+
					"disambiguate", d.Host, ports))
			case number != 0 && len(ports) > 0 && !slices.Contains(ports, number):
				w.report(v.Resource, missing(at+".port.number", "host:port", fmt.Sprintf("%s:%d", d.Host, number)).WithHint("the service has %v", ports))
			}
		}
	}
}
