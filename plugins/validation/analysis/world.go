package analysis

import (
	"iter"
	"maps"
	"reflect"
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
	rows      []objectRow
	proxies   []Proxy
	// services by host, in lower case; a host can be in several namespaces.
	services  map[string][]Service
	wildcards []string
	workloads []Workload
	// peopled are the namespaces in which workloads are known, with the numbers of these in
	// workloads. labelled are those by one of their labels: NAMESPACE KEY=VALUE, and without the
	// namespace for all. keys are the keys of labels that any has.
	peopled  map[string][]int
	labelled map[string][]int
	keys     map[string]bool
	// pods says that Pods are known, and with them all that run.
	pods bool
	// objects are those of Kubernetes, by kind; namespaces are by name, and Services by namespace.
	objects    map[string][]*Resource
	namespaces map[string]*Resource
	servicesIn map[string][]*Resource
	// remote are Services of other clusters.
	remote []*Resource
	// unservedGateways are those of the Gateway API that nobody serves, each with the reason.
	unservedGateways map[string]string
	// secrets and configMaps are nil where they are not known.
	secrets, configMaps Credentials
	gateways            map[string]item[*networking.Gateway]
	// typed are resources by the type of their specs, []item of each.
	typed map[reflect.Type]any
	found []Result
	// had are the findings that were reported, for those who look again.
	had map[reported]bool
}

// reported is a finding of a resource.
type reported struct {
	of            *Resource
	code, message string
}

func newWorld(in Input) *world {
	w := &world{
		mesh: in.Mesh, rows: in.rows, proxies: in.Proxies, unservedGateways: in.unserved,
		services: map[string][]Service{}, workloads: slices.Clone(in.Workloads),
		peopled: map[string][]int{}, labelled: map[string][]int{}, keys: map[string]bool{},
		secrets: in.Secrets, configMaps: in.ConfigMaps, gateways: map[string]item[*networking.Gateway]{},
		objects: map[string][]*Resource{}, namespaces: map[string]*Resource{}, servicesIn: map[string][]*Resource{},
		had: map[reported]bool{}, typed: map[reflect.Type]any{},
	}
	if in.NoStatuses {
		w.rows = nil
	}
	for i := range in.Resources {
		w.resources = append(w.resources, &in.Resources[i])
	}
	for i := range in.Remote {
		w.remote = append(w.remote, &in.Remote[i])
	}
	for _, s := range in.Services {
		w.addService(s)
	}
	w.readEntries()
	w.indexObjects()
	w.indexWorkloads()
	for _, g := range of[*networking.Gateway](w) {
		w.gateways[g.Namespace+"/"+g.Name] = g
	}
	return w
}

// indexObjects finds the objects of Kubernetes.
func (w *world) indexObjects() {
	for _, r := range w.resources {
		if kind, ok := looked[r.Kind]; !ok || r.Spec != nil || strings.TrimPrefix(r.Group+"/"+r.Version, "/") != kind.version {
			continue
		}
		w.objects[r.Kind] = append(w.objects[r.Kind], r)
		switch r.Kind {
		case kindNamespace:
			w.namespaces[r.Name] = r
		case kindService:
			w.servicesIn[r.Namespace] = append(w.servicesIn[r.Namespace], r)
		}
	}
}

// addProxies takes connected proxies for workloads, but those that an endpoint of the same address
// and labels stands for.
func (w *world) addProxies() {
	type place struct{ namespace, address, labels string }
	known := map[place]bool{}
	for _, each := range w.workloads {
		known[place{each.Namespace, each.Name, show(each.Labels)}] = true
	}
	for _, p := range w.proxies {
		id, _ := istio.ParseNodeID(p.Name)
		if p.Namespace != "" && !known[place{p.Namespace, id.Address, show(p.Labels)}] {
			w.workloads = append(w.workloads, Workload{Namespace: p.Namespace, Labels: p.Labels, Name: p.Name})
		}
	}
}

// indexWorkloads finds workloads by their labels. Where Pods are known, templates of some say
// nothing more.
func (w *world) indexWorkloads() {
	w.pods = slices.ContainsFunc(w.workloads, func(each Workload) bool { return each.pod })
	if w.pods {
		w.workloads = slices.DeleteFunc(w.workloads, func(each Workload) bool { return each.template })
	}
	w.addProxies()
	for i, each := range w.workloads {
		w.peopled[each.Namespace] = append(w.peopled[each.Namespace], i)
		for k, v := range each.Labels {
			w.keys[k] = true
			for _, namespace := range []string{"", each.Namespace} {
				at := namespace + " " + k + "=" + v
				w.labelled[at] = append(w.labelled[at], i)
			}
		}
	}
}

// readEntries takes services and workloads from resources.
func (w *world) readEntries() {
	for _, s := range of[*networking.ServiceEntry](w) {
		service := Service{Namespace: s.Namespace, Selector: s.spec.WorkloadSelector.GetLabels()}
		if service.Seen = istio.Export(s.spec.ExportTo, w.mesh.GetDefaultServiceExportTo(), s.Namespace); service.Seen == nil {
			service.Seen = []string{}
		}
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

// of returns the resources of a kind, in order. Nobody changes what it returns.
func of[M proto.Message](w *world) (list []item[M]) {
	kind := reflect.TypeFor[M]()
	if had, ok := w.typed[kind].([]item[M]); ok {
		return had
	}
	for _, r := range w.resources {
		if spec, ok := r.Spec.(M); ok {
			list = append(list, item[M]{r, spec})
		}
	}
	w.typed[kind] = list
	return list
}

// report notes a finding.
func (w *world) report(r *Resource, f finding.Finding) {
	w.had[reported{r, f.Code, f.Message}] = true
	w.found = append(w.found, Result{r, f})
}

// reportOnce notes a finding, unless the same was said of the resource before.
func (w *world) reportOnce(r *Resource, f finding.Finding) {
	if !w.had[reported{r, f.Code, f.Message}] {
		w.report(r, f)
	}
}

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

// isSeen reports whether a service is seen in one of some namespaces.
func (s *Service) isSeen(namespaces ...string) bool {
	return s.Seen == nil || slices.Contains(s.Seen, istio.Everywhere) ||
		slices.ContainsFunc(namespaces, func(n string) bool { return slices.Contains(s.Seen, n) })
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
	for i := range w.selected(namespace, selector) {
		list = append(list, w.workloads[i])
	}
	return list
}

// matches reports whether a selector selects any workload in a namespace, or in all.
func (w *world) matches(namespace string, selector map[string]string) bool {
	for range w.selected(namespace, selector) {
		return true
	}
	return false
}

// selected yields the numbers of the workloads that a selector selects in a namespace, or in all.
// It looks at those alone that have the label of the selector that fewest have.
func (w *world) selected(namespace string, selector map[string]string) iter.Seq[int] {
	return func(yield func(int) bool) {
		candidates, all := w.peopled[namespace], namespace == ""
		for k, v := range selector {
			if few := w.labelled[namespace+" "+k+"="+v]; all || len(few) < len(candidates) {
				candidates, all = few, false
			}
		}
		if all {
			for i := range w.workloads {
				if !yield(i) {
					return
				}
			}
			return
		}
		for _, i := range candidates {
			if istio.Selects(selector, w.workloads[i].Labels) && !yield(i) {
				return
			}
		}
	}
}

// show writes labels as selectors are written.
func show(labels map[string]string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, k+"="+labels[k])
	}
	return strings.Join(parts, ",")
}
