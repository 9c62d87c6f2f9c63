// Package analysis checks what resources mean to each other: references to what is not there,
// routes that are never taken, policies that contradict. Where Istio has a message for the same
// thing, its code is used, so that people find the help they know.
//
// Nothing found here keeps a resource from being served: what is missing may come later, from
// another source.
package analysis

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"go.yaml.in/yaml/v3"
	mesh "istio.io/api/mesh/v1alpha1"
	kubernetes "k8s.io/api/networking/v1"
)

// Input is what is analysed together.
type Input struct {
	// Resources of Istio's kinds, Ingresses and their classes, and objects of Kubernetes that are
	// looked at themselves.
	Resources []Resource
	// Remote are Services of other clusters of the mesh.
	Remote []Resource
	// Mesh is the mesh's settings; nil: the defaults.
	Mesh *mesh.MeshConfig
	// Services that exist besides those of ServiceEntries.
	Services []Service
	// Workloads that are known, besides those of WorkloadEntries, WorkloadGroups, endpoints and
	// Proxies.
	// Where none is known in a namespace, nothing is said of selectors that match none there.
	Workloads []Workload
	// Secrets and ConfigMaps are what TLS settings may name; nil: they are not known, and nothing
	// is said of those that are missing.
	Secrets, ConfigMaps Credentials
	// Proxies that are connected; nil: they are not known.
	Proxies []Proxy
	// NoStatuses says that not all is known of what statuses of objects of the Gateway API depend
	// on: nothing is said of them.
	NoStatuses bool

	rows []objectRow
	// unserved are the Gateways of the Gateway API of classes that nobody serves, by namespace and
	// name, each with the reason.
	unserved map[string]string
}

// Resource is a resource and where it comes from.
type Resource struct {
	finding.Resource
	// File, Line and Column are where it begins. File may be a source of another kind.
	File         string
	Line, Column int
	// derived: it was made of another object.
	derived bool
	// cluster is the other one that it is in; empty: none.
	cluster string
	// ingress and class are what an Ingress or an IngressClass has.
	ingress *kubernetes.IngressSpec
	class   *kubernetes.IngressClassSpec
	// pod is what a Pod has, or the template of a Deployment, podAt where that stands, and
	// podLabels and podAnnotations what its metadata have.
	pod                       *podSpec
	podAt                     string
	podLabels, podAnnotations map[string]string
	// service, webhooks and definition are what objects of these kinds have; data are the values of
	// a ConfigMap of Istio's, and the keys, without values, of a Secret about another cluster.
	service    *serviceSpec
	webhooks   []webhook
	definition *definition
	data       map[string]string
	// conditions are those of its status, and allocated says that this has addresses.
	conditions []condition
	allocated  bool
	// route is the spec of a route of the Gateway API whose document isn't known.
	route *yaml.Node
}

// Service is a service of a registry.
type Service struct {
	Host, Namespace string
	Ports           []uint32
	// Datagrams are those of Ports that are for UDP.
	Datagrams []uint32
	Selector  map[string]string
	// Seen are the namespaces that see it, * for all; nil: all.
	Seen []string
}

// Workload is something that selectors select.
type Workload struct {
	Namespace string
	Labels    map[string]string
	// Name is for messages.
	Name string
	// pod and template say that it is a Pod, or the template of some; node is where the Pod runs.
	pod, template bool
	node          string
}

// Result is a finding and the resource that it is about.
type Result struct {
	Resource *Resource
	finding.Finding
}

// analyzers are the checks. Each looks at the world and reports, in order of what it looks at.
var analyzers = [...]func(*world){
	references, subsets, destinationPorts, subsetsWithoutPods, providers, defaultProviders, credentials,
	meshHosts, gatewayHosts, gatewayServers, conflictingGateways, filterChains, unusedGateways, duplicateCertificates, gatewayPorts, shadowedRoutes,
	alone, delegates, deprecatedFields,
	unmatchedSelectors, policyNamespaces, gatewaySelectors, unservedTargets, sidecars, ambientSidecars, telemetries, peerPolicies, hiddenHosts,
	mtlsConflicts, unverifiedServers, plainBackends, statuses, tokens, claimRoutes,
	annotations, relativePatches, protocols, ingresses, regexes,
	proxysUsers, portNames, sharedDeployments, listeners, injection, autoImages, proxyImages,
	injectingWebhooks, externalWebhooks, definitions, conditions, networks,
	clusters,
}

// Analyze returns what there is to say, in order of files and lines. Findings that the resource's
// own annotation suppresses are left out.
func Analyze(in Input) []Result {
	w := newWorld(in)
	for _, analyze := range analyzers {
		analyze(w)
	}
	found := slices.DeleteFunc(w.found, func(r Result) bool { return r.Resource.derived || suppressed(r) })
	slices.SortStableFunc(found, func(a, b Result) int {
		return cmp.Or(
			cmp.Compare(a.Resource.File, b.Resource.File), cmp.Compare(a.Resource.Line, b.Resource.Line),
			cmp.Compare(a.Resource.Kind, b.Resource.Kind), cmp.Compare(a.Resource.Namespace, b.Resource.Namespace),
			cmp.Compare(a.Resource.Name, b.Resource.Name),
			cmp.Compare(a.Code, b.Code), cmp.Compare(a.Field, b.Field))
	})
	return found
}

// suppression is the annotation that lists codes not to be told of a resource, Istio's or ours,
// parted by commas; * for all.
const suppression = "galley.istio.io/analyze-suppress"

func suppressed(r Result) bool {
	for code := range strings.SplitSeq(r.Resource.Annotations[suppression], ",") {
		if code = strings.TrimSpace(code); code == "*" || code == r.Code || code != "" && code == istiosCode(r.Resource.Group, r.Finding) {
			return true
		}
	}
	return false
}
