package kubernetes

import (
	"context"
	"net/netip"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/mcs"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// MultiCluster is what is done with Multi-Cluster Services (ServiceExport, ServiceImport). Names in
// parentheses are istiod's.
type MultiCluster struct {
	// Discovery: endpoints of a service are for clients of their own cluster, unless it is exported
	// (ENABLE_MCS_SERVICE_DISCOVERY).
	Discovery bool `json:"discovery" doc:"Whether endpoints of services that aren't exported are for clients of their own cluster alone."`
	// Hosts: exports and imports are told, so that registry/mcs makes services of all clusters of
	// them (ENABLE_MCS_HOST).
	Hosts bool `json:"hosts" doc:"Whether exports and imports are told, for registry/mcs."`
	// ClusterLocal: endpoints behind a service's own name are for clients of their own cluster,
	// even if it is exported (ENABLE_MCS_CLUSTER_LOCAL).
	ClusterLocal bool `json:"clusterLocal" doc:"Whether all endpoints behind a service's own name are for clients of their own cluster alone."`
	// Group and Version of the kinds (MCS_API_GROUP, MCS_API_VERSION).
	Group   string `json:"group" doc:"The API group of both kinds."`
	Version string `json:"version" doc:"Its version."`
}

// check returns what can't be, an error with its field.
func (m *MultiCluster) check() error {
	switch {
	case m.Group == "" || m.Version == "":
		return strict.Errorf("multiCluster", "group and version can't be empty")
	case m.Hosts && !m.Discovery:
		return strict.Errorf("multiCluster.hosts", "needs discovery: true")
	case m.ClusterLocal && !m.Hosts:
		return strict.Errorf("multiCluster.clusterLocal", "needs hosts: true")
	}
	return nil
}

// exports are the ServiceExports and ServiceImports of a cluster.
type exports struct {
	config           *MultiCluster
	exports, imports *awaited
}

// newExports makes what follows the kinds; nil where nobody asks for them.
func newExports(c *MultiCluster) *exports {
	if !c.Discovery {
		return nil
	}
	of := func(kind string) *awaited {
		return &awaited{kind: kind, versions: []schema.GroupVersion{{Group: c.Group, Version: c.Version}}}
	}
	out := &exports{config: c, exports: of("ServiceExport")}
	if c.Hosts {
		out.imports = of("ServiceImport")
	}
	return out
}

// kinds are what is followed, by the table of its rows.
func (e *exports) kinds() map[string]*awaited {
	out := map[string]*awaited{}
	if e != nil {
		out[mcs.Exports] = e.exports
		if e.imports != nil {
			out[mcs.Imports] = e.imports
		}
	}
	return out
}

// run follows the kinds until ctx ends. changed is told the units that an object may change, failed
// what can't be read.
func (e *exports) run(ctx context.Context, client *kube.Client, changed func(...unit), failed func(kind string, err error)) {
	var running sync.WaitGroup
	for table, of := range e.kinds() {
		note := func(object any) {
			if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
				changed(unit{table, key}, unit{state.Services, key})
			}
		}
		handler := cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, now any) { note(now) }, DeleteFunc: note}
		running.Go(func() { of.run(ctx, client, leanExport, handler, failed) })
	}
	running.Wait()
}

// late are the kinds of which nothing is known yet.
func (e *exports) late() (out []string) {
	for _, of := range e.kinds() {
		if of.late() {
			out = append(out, of.kind)
		}
	}
	return out
}

// exported is what is kept of an export or an import.
type exported struct {
	metav1.ObjectMeta
	addresses []string
}

// leanExport keeps of an import its addresses, sorted.
func leanExport(sent any) (any, error) {
	u, ok := sent.(*unstructured.Unstructured)
	if !ok {
		return sent, nil // kept already
	}
	out := &exported{ObjectMeta: metav1.ObjectMeta{Name: u.GetName(), Namespace: u.GetNamespace(), ResourceVersion: u.GetResourceVersion(), UID: u.GetUID()}}
	list, _, _ := unstructured.NestedSlice(u.Object, "spec", "ips")
	for _, a := range list {
		if text, ok := a.(string); ok {
			if _, err := netip.ParseAddr(text); err == nil {
				out.addresses = append(out.addresses, text)
			}
		}
	}
	slices.Sort(out.addresses)
	return out, nil
}

// exportOf is the object with a service's key; nil: there is none.
func exportOf(of *awaited, key string) *exported {
	if i := of.informer(); i != nil {
		return get[exported](i, key)
	}
	return nil
}

// confined reports whether endpoints behind a service's own name are for clients of their own
// cluster.
func (e *exports) confined(key string) bool {
	return e != nil && (e.config.ClusterLocal || exportOf(e.exports, key) == nil)
}

// row makes the row of an export or an import; none, where it says nothing.
func (e *exports) row(c *Config, u unit) map[string]map[string]*sdk.Row {
	is := exportOf(e.kinds()[u.table], u.key)
	if is == nil || !c.MultiCluster.Hosts || u.table == mcs.Imports && len(is.addresses) == 0 {
		return nil
	}
	s := &mcs.Service{Cluster: c.Cluster, Namespace: is.Namespace, Name: is.Name, Host: c.hostOf(is.Namespace, is.Name), Addresses: is.addresses}
	return one(u.table, s.Row())
}
