package analysis

import (
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"google.golang.org/protobuf/proto"
	mesh "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
)

// Defaults of a mesh.
const (
	defaultRoot = "istio-system"
	domain      = "cluster.local"
	meshGateway = "mesh"
)

// world is all that is analysed, indexed.
type world struct {
	resources []*Resource
	mesh      *mesh.MeshConfig
	proxies   []Proxy
	// services by host, in lower case; a host can be in several namespaces.
	services  map[string][]Service
	wildcards []string
	workloads []Workload
	// peopled are the namespaces in which workloads are known.
	peopled map[string]bool
	// secrets and configMaps are nil where they are not known.
	secrets, configMaps Credentials
	gateways            map[string]item[*networking.Gateway]
	found               []Result
}

func newWorld(in Input) *world {
	w := &world{
		mesh: in.Mesh, proxies: in.Proxies, services: map[string][]Service{}, workloads: slices.Clone(in.Workloads),
		peopled: map[string]bool{}, secrets: in.Secrets, configMaps: in.ConfigMaps, gateways: map[string]item[*networking.Gateway]{},
	}
	for i := range in.Resources {
		w.resources = append(w.resources, &in.Resources[i])
	}
	for _, s := range in.Services {
		w.addService(s)
	}
	w.readEntries()
	for _, each := range w.workloads {
		w.peopled[each.Namespace] = true
	}
	for _, g := range of[*networking.Gateway](w) {
		w.gateways[g.Namespace+"/"+g.Name] = g
	}
	return w
}

// readEntries takes services and workloads from resources.
func (w *world) readEntries() {
	for _, s := range of[*networking.ServiceEntry](w) {
		service := Service{Namespace: s.Namespace, Selector: s.spec.WorkloadSelector.GetLabels()}
		for _, p := range s.spec.Ports {
			service.Ports = append(service.Ports, p.GetNumber())
		}
		for _, host := range s.spec.Hosts {
			service.Host = host
			w.addService(service)
		}
		for _, e := range s.spec.Endpoints {
			w.workloads = append(w.workloads, Workload{Namespace: s.Namespace, Labels: e.GetLabels(), Name: e.GetAddress()})
		}
	}
	for _, e := range of[*networking.WorkloadEntry](w) {
		w.workloads = append(w.workloads, Workload{Namespace: e.Namespace, Labels: e.spec.Labels, Name: e.Name})
	}
	for _, g := range of[*networking.WorkloadGroup](w) {
		labels := maps.Clone(g.spec.GetTemplate().GetLabels())
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, g.spec.GetMetadata().GetLabels())
		w.workloads = append(w.workloads, Workload{Namespace: g.Namespace, Labels: labels, Name: g.Name})
	}
}

func (w *world) addService(s Service) {
	if istio.IsWildcard(s.Host) {
		w.wildcards = append(w.wildcards, s.Host)
	}
	w.services[s.Host] = append(w.services[s.Host], s)
}

// item is a resource with its spec.
type item[M proto.Message] struct {
	*Resource
	spec M
}

// of returns the resources of a kind, in order.
func of[M proto.Message](w *world) (list []item[M]) {
	for _, r := range w.resources {
		if spec, ok := r.Spec.(M); ok {
			list = append(list, item[M]{r, spec})
		}
	}
	return list
}

// report notes a finding.
func (w *world) report(r *Resource, f finding.Finding) { w.found = append(w.found, Result{r, f}) }

// root is the namespace whose policies are the mesh's.
func (w *world) root() string {
	if name := w.mesh.GetRootNamespace(); name != "" {
		return name
	}
	return defaultRoot
}

// fullName returns the name that a short one means in a namespace.
func fullName(host, namespace string) string {
	return istio.Resolve(strings.ToLower(strings.TrimSuffix(host, ".")), namespace, domain)
}

// lookup returns the services that a destination's host means, as generator/istio has it: the
// service whose host it is, letter by letter, once a name without dots is completed; or a wildcard
// that covers it.
func (w *world) lookup(host, namespace string) []Service {
	full := istio.Resolve(host, namespace, domain)
	if list := w.services[full]; len(list) > 0 {
		return list
	}
	for _, wildcard := range w.wildcards {
		if istio.Covers(wildcard, full) {
			return w.services[wildcard]
		}
	}
	return nil
}

// meant returns the host of the service that a name is like which is none's: in another case, with
// a dot behind it, or without what stands behind the namespace; empty for none.
func (w *world) meant(host, namespace string) string {
	full := fullName(host, namespace)
	for _, name := range []string{full, full + ".svc." + domain, full + "." + domain} {
		if list := w.services[name]; len(list) > 0 {
			return list[0].Host
		}
	}
	return ""
}

// matching returns the workloads that a selector selects in a namespace; in all of them where the
// namespace is empty.
func (w *world) matching(namespace string, selector map[string]string) (list []Workload) {
	for _, each := range w.workloads {
		if (namespace == "" || each.Namespace == namespace) && istio.Selects(selector, each.Labels) {
			list = append(list, each)
		}
	}
	return list
}

// show writes labels as selectors are written.
func show(labels map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, k+"="+labels[k])
	}
	return strings.Join(parts, ",")
}
