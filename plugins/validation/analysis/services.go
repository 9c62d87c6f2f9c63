package analysis

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/hosts"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	networking "istio.io/api/networking/v1alpha3"
)

const (
	portName       = "IST0118"
	externalPort   = "IST0150"
	manyProtocols  = "IST0116"
	sharedTarget   = "IST0137"
	portNotService = "IST0162"
)

// managed is the label of what a control plane made for a Gateway.
const managed = "gateway.istio.io/managed"

// portNames finds ports of Services whose name says no protocol, so that it is guessed from what is
// sent. Those of ExternalName services are not: they have to say it.
func portNames(w *world) {
	for _, r := range w.objectsOf(kindService) {
		if r.Labels[managed] != "" || r.Namespace == w.root() || strings.HasPrefix(r.Namespace, "kube-") {
			continue
		}
		for i, p := range r.service.Ports {
			at := fmt.Sprintf("spec.ports[%d]", i)
			external := r.service.Type == "ExternalName"
			switch {
			case external && (p.Name == "tcp" || !p.isSaid()):
				w.report(r, finding.Warnf(externalPort, at, "port %d of an ExternalName Service says no protocol, and would match all of TCP", p.Port).
					WithHint("name it after its protocol, such as https or tcp-db"))
			case !external && !p.isSaid():
				w.report(r, finding.Infof(portName, at, "the name of port %d (%q) says no protocol: it is guessed from what is sent", p.Port, p.Name).
					WithHint("name it PROTOCOL or PROTOCOL-SUFFIX, such as http-web, or set appProtocol"))
			}
		}
	}
}

// said are numbers of ports whose servers speak first, so that nothing is guessed there. Source:
// Istio, "Protocol Selection", server first protocols.
var said = []uint32{25, 53, 3306, 27017}

// isSaid reports whether a port says its protocol.
func (p servicePort) isSaid() bool {
	if p.Protocol != "" && p.Protocol != "TCP" {
		return true
	}
	if p.AppProtocol != "" {
		named := strings.ToLower(p.AppProtocol)
		return hosts.Protocol(named) != "" || slices.Contains([]string{"kubernetes.io/h2c", "kubernetes.io/ws", "kubernetes.io/wss"}, named)
	}
	if hosts.Protocol(p.Name) != "" {
		return true
	}
	before, _, _ := strings.Cut(p.Name, "-")
	return hosts.Protocol(before) != "" || strings.HasPrefix(strings.ToLower(p.Name), "grpc-web") || p.Name == "" && slices.Contains(said, p.Port)
}

// selecting returns the Services of a namespace that select a pod with these labels.
func (w *world) selecting(namespace string, labels map[string]string) (list []*Resource) {
	for _, s := range w.servicesIn[namespace] {
		if len(s.service.Selector) > 0 && istio.Selects(s.service.Selector, labels) {
			list = append(list, s)
		}
	}
	return list
}

// sharedDeployments finds Deployments in the mesh whose Services disagree: about the protocol of a
// port, or about the port that leads to one of their ports.
func sharedDeployments(w *world) {
	for _, d := range w.objectsOf(kindDeployment) {
		if d.Labels[managed] == "istio.io-mesh-controller" || !w.inMesh(d) {
			continue
		}
		services := w.selecting(d.Namespace, d.podLabels)
		if len(services) < 2 {
			continue
		}
		protocols, targets := map[uint32]map[string][]string{}, map[string]map[uint32]string{}
		for _, s := range services {
			for i := range s.service.Ports {
				p := &s.service.Ports[i]
				name, protocol := fullOf(s), p.Protocol
				if protocol == "" {
					protocol = "TCP"
				}
				if protocols[p.Port] == nil {
					protocols[p.Port] = map[string][]string{}
				}
				protocols[p.Port][protocol] = append(protocols[p.Port][protocol], name)
				target := p.target()
				if target == "" {
					target = strconv.Itoa(int(p.Port))
				}
				if targets[target] == nil {
					targets[target] = map[uint32]string{}
				}
				targets[target][p.Port] = name
			}
		}
		w.disagree(d, protocols, targets)
	}
}

// disagree reports what the Services of a Deployment disagree about.
func (w *world) disagree(d *Resource, protocols map[uint32]map[string][]string, targets map[string]map[uint32]string) {
	for _, port := range slices.Sorted(maps.Keys(protocols)) {
		if len(protocols[port]) > 1 {
			names := slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Values(protocols[port]))...)))
			w.report(d, finding.Warnf(manyProtocols, "metadata.name",
				"several services of this deployment have port %d with different protocols: %s", port, strings.Join(names, ", ")).
				WithHint("a port of a pod has one protocol: give the services the same, or other ports"))
		}
	}
	for _, target := range slices.Sorted(maps.Keys(targets)) {
		if ports := targets[target]; len(ports) > 1 {
			names := slices.Compact(slices.Sorted(maps.Values(ports)))
			w.report(d, finding.Warnf(sharedTarget, "metadata.name", "services %s lead to the target port %s of this deployment from different ports: %v",
				strings.Join(names, ", "), target, slices.Sorted(maps.Keys(ports))).WithHint("give the services the same port"))
		}
	}
}

// gatewayPorts finds ports of Gateways that no Service of their pods leads to, where pods are
// known.
func gatewayPorts(w *world) {
	for _, g := range of[*networking.Gateway](w) {
		pods, ports := 0, map[uint32]bool{}
		for _, p := range w.objectsOf(kindPod) {
			if !istio.Selects(g.spec.Selector, p.Labels) {
				continue
			}
			pods++
			for _, s := range w.selecting(p.Namespace, p.Labels) {
				s.service.lead(ports)
			}
		}
		if pods == 0 {
			continue
		}
		for i, s := range g.spec.Servers {
			if n := s.GetPort().GetNumber(); s.Port != nil && !ports[n] {
				w.report(g.Resource, finding.Warnf(portNotService, fmt.Sprintf("spec.servers[%d].port.number", i),
					"no service of the gateway's pods (%s) has port %d, nor leads to it", show(g.spec.Selector), n).
					WithHint("add the port to the service, if it is to be reached there"))
			}
		}
	}
}

// lead notes the ports of a Service for TCP, and those of pods that they lead to.
func (s *serviceSpec) lead(ports map[uint32]bool) {
	for i := range s.Ports {
		p := &s.Ports[i]
		if p.Protocol != "" && p.Protocol != "TCP" {
			continue
		}
		ports[p.Port] = true
		if n, err := strconv.ParseUint(p.target(), 10, 32); err == nil {
			ports[uint32(n)] = true
		}
	}
}
