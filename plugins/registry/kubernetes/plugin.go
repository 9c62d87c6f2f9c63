// Package kubernetes is the built-in plugin registry/kubernetes: Services, EndpointSlices, Pods, Nodes and Namespaces of a cluster.
//
// watch.go and exports.go keep what the API server has, service.go, endpoint.go, pod.go and protocol.go make rows of it, registry.go publishes
// those of what has changed.
package kubernetes

import (
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/mcs"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	kube.Access
	// Cluster is the cluster's id, Domain its DNS domain.
	Cluster string `json:"cluster"`
	Domain  string `json:"domain"`
	// SystemNamespace is the namespace whose label topology.istio.io/network says which network the cluster is in.
	SystemNamespace string `json:"systemNamespace"`
	// DiscoverySelectors: namespaces that the mesh's discoverySelectors leave out are left out.
	DiscoverySelectors bool `json:"discoverySelectors"`
	// DualStack: an endpoint that stands for a pod has all addresses of the pod, and is one endpoint whatever slices say of them.
	DualStack bool `json:"dualStack"`
	// Place has the kubeconfig of the cluster, if it isn't the one that Access reaches. Hash is what may differ in the configs of two instances whose kubeconfigs do.
	kube.Place
	Hash string `json:"hash"`
	// Revision is this control plane's: WorkloadEntries of a remote cluster whose label
	// istio.io/rev names another one are left out. Empty: none are.
	Revision string `json:"revision"`
	// WorkloadEntries says what those of a remote cluster count for.
	WorkloadEntries WorkloadEntries `json:"workloadEntries"`
	// MultiCluster says what ServiceExports and ServiceImports count for.
	MultiCluster MultiCluster `json:"multiCluster"`
}

const configSchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "kubeconfig": {"type": "string", "description": "File with the API server's address and credentials; without it KUBECONFIG, ~/.kube/config, or the pod's service account."},
    "context": {"type": "string", "description": "Which of its contexts; its current one if absent."},
    "cluster": {"type": "string", "default": "Kubernetes", "description": "The cluster's id, which endpoints are said to be in."},
    "domain": {"type": "string", "default": "cluster.local", "description": "The cluster's DNS domain: services are NAME.NAMESPACE.svc.DOMAIN."},
    "systemNamespace": {"type": "string", "default": "istio-system", "description": "The namespace whose label topology.istio.io/network says which network the cluster is in."},
    "discoverySelectors": {"type": "boolean", "default": true, "description": "Whether the mesh's discoverySelectors say which namespaces count."},
    "dualStack": {"type": "boolean", "default": false, "description": "Whether a pod with addresses of both families is one endpoint with all of them (istiod: ISTIO_DUAL_STACK)."},
    "remote": {"type": "string", "description": "NAMESPACE/SECRET/KEY: where the kubeconfig of the cluster stands, if it is another one than that of kubeconfig and context, which has the Secret; or file:NAME of a file in directory."},
    "directory": {"type": "string", "description": "Where kubeconfigs are that remote names as files."},
    "hash": {"type": "string", "description": "Anything; where it changes, as that of another kubeconfig does, a new instance takes the place of the old one."},
    "revision": {"type": "string", "description": "This control plane's revision: WorkloadEntries of a remote cluster whose label istio.io/rev names another one are left out. Without it none are."},
    "workloadEntries": {
      "type": "object",
      "additionalProperties": false,
      "description": "What WorkloadEntries of a remote cluster count for.",
      "properties": {
        "read": {"type": "boolean", "default": true, "description": "Whether they are read, so that ServiceEntries and services of their cluster can select them."},
        "services": {"type": "boolean", "default": true, "description": "Whether services of their cluster select them."}
      }
    },
    "multiCluster": {
      "type": "object",
      "additionalProperties": false,
      "description": "What ServiceExports and ServiceImports (Multi-Cluster Services) count for: nothing, if absent.",
      "properties": {
        "discovery": {"type": "boolean", "default": false, "description": "Whether endpoints of services that aren't exported are for clients of their own cluster alone."},
        "hosts": {"type": "boolean", "default": false, "description": "Whether exports and imports are told, for registry/mcs."},
        "clusterLocal": {"type": "boolean", "default": false, "description": "Whether all endpoints behind a service's own name are for clients of their own cluster alone."},
        "group": {"type": "string", "default": "multicluster.x-k8s.io", "description": "The API group of both kinds."},
        "version": {"type": "string", "default": "v1alpha1", "description": "Its version."}
      }
    },
    "qps": {"type": "number", "exclusiveMinimum": 0, "default": 80, "description": "Requests a second to the API server, at most."},
    "burst": {"type": "integer", "minimum": 1, "default": 160, "description": "Requests at once, beyond that."}
  }
}`

// agent is what it says it is to API servers.
const agent = "coxswain/registry-kubernetes"

func parse(config []byte) (Config, error) {
	c := Config{Access: kube.DefaultAccess(), Cluster: "Kubernetes", Domain: "cluster.local", SystemNamespace: "istio-system", DiscoverySelectors: true, WorkloadEntries: WorkloadEntries{Read: true, Services: true}, MultiCluster: MultiCluster{Group: "multicluster.x-k8s.io", Version: "v1alpha1"}}
	if err := strict.Decode(config, &c); err != nil {
		return c, err
	}
	switch {
	case c.Cluster == "":
		return c, strict.Errorf("cluster", "is empty")
	case c.Domain == "":
		return c, strict.Errorf("domain", "is empty")
	}
	if err := c.Place.Check(); err != nil {
		return c, err
	}
	if err := c.MultiCluster.check(); err != nil {
		return c, err
	}
	return c, c.Access.Check()
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.RegistryPlugin {
	return sdk.RegistryPlugin{
		Name:      "registry/kubernetes",
		Version:   "1",
		Reads:     []string{state.Mesh},
		Publishes: []string{state.Services, state.Endpoints, state.Workloads, state.Namespaces, state.ClusterServices, state.NetworkGateways, mcs.Exports, mcs.Imports},
		New: sdk.WithRawConfig([]byte(configSchema), func(config []byte) (sdk.Registry, error) {
			c, err := parse(config)
			if err != nil {
				return nil, err
			}
			client, err := c.Client(agent)
			if err != nil {
				return nil, err
			}
			return &registry{config: c, client: client}, nil
		}),
	}
}
