// Package kubernetes is the built-in plugin registry/kubernetes: Services, EndpointSlices, Pods,
// Nodes and Namespaces of a cluster.
//
// watch.go and exports.go keep what the API server has, service.go, endpoint.go, pod.go and
// protocol.go make rows of it, registry.go publishes those of what has changed.
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
	Cluster string `json:"cluster" doc:"The cluster's id, which endpoints are said to be in."`
	Domain  string `json:"domain" doc:"The cluster's DNS domain: services are NAME.NAMESPACE.svc.DOMAIN."`
	// SystemNamespace is the namespace whose label topology.istio.io/network says which network the
	// cluster is in.
	SystemNamespace string `json:"systemNamespace" doc:"The namespace whose label topology.istio.io/network says which network the cluster is in."`
	// DiscoverySelectors: namespaces that the mesh's discoverySelectors leave out are left out.
	DiscoverySelectors bool `json:"discoverySelectors" doc:"Whether the mesh's discoverySelectors say which namespaces count."`
	// DualStack: an endpoint that stands for a pod has all addresses of the pod, and is one
	// endpoint whatever slices say of them.
	DualStack bool `json:"dualStack" doc:"Whether a pod with addresses of both families is one endpoint with all of them (istiod: ISTIO_DUAL_STACK)."`
	// Place has the kubeconfig of the cluster, if it isn't the one that Access reaches. Hash is
	// what may differ in the configs of two instances whose kubeconfigs do.
	kube.Place
	Hash string `json:"hash" doc:"Anything; where it changes, as that of another kubeconfig does, a new instance takes the place of the old one."`
	// Revision is this control plane's: WorkloadEntries of a remote cluster whose label
	// istio.io/rev names another one are left out. Empty: none are.
	Revision string `json:"revision" doc:"This control plane's revision: WorkloadEntries of a remote cluster whose label istio.io/rev names another one are left out. Without it none are."`
	// WorkloadEntries says what those of a remote cluster count for.
	WorkloadEntries WorkloadEntries `json:"workloadEntries" doc:"What WorkloadEntries of a remote cluster count for."`
	// MultiCluster says what ServiceExports and ServiceImports count for.
	MultiCluster MultiCluster `json:"multiCluster" doc:"What ServiceExports and ServiceImports (Multi-Cluster Services) count for: nothing, if absent."`
}

// agent is what it says it is to API servers.
const agent = "coxswain/registry-kubernetes"

// defaults are what counts where the config says nothing.
func defaults() Config {
	return Config{
		Access: kube.DefaultAccess(), Cluster: "Kubernetes", Domain: "cluster.local",
		SystemNamespace: "istio-system", DiscoverySelectors: true,
		WorkloadEntries: WorkloadEntries{Read: true, Services: true},
		MultiCluster:    MultiCluster{Group: "multicluster.x-k8s.io", Version: "v1alpha1"},
	}
}

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	switch {
	case c.Cluster == "":
		return strict.Errorf("cluster", "is empty")
	case c.Domain == "":
		return strict.Errorf("domain", "is empty")
	}
	if err := c.Place.Check(); err != nil {
		return err
	}
	if err := c.MultiCluster.check(); err != nil {
		return err
	}
	return c.Access.Check()
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.RegistryPlugin {
	return sdk.RegistryPlugin{
		Name:    "registry/kubernetes",
		Version: "1",
		Reads:   []string{state.Mesh},
		Publishes: []string{
			state.Services, state.Endpoints, state.Workloads, state.Namespaces, state.ClusterServices,
			state.NetworkGateways, mcs.Exports, mcs.Imports,
		},
		New: sdk.WithConfig(defaults(), func(c Config) (sdk.Registry, error) {
			client, err := c.Client(agent)
			if err != nil {
				return nil, err
			}
			return &registry{config: c, client: client}, nil
		}),
	}
}
