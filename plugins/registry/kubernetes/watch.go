package kubernetes

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
)

// Indexes of what is kept.
const (
	byService = "service" // slices, by NAMESPACE/NAME of their service
	byPod     = "pod"     // slices, by NAMESPACE/NAME of the pods in them
	byNode    = "node"    // slices and pods, by their nodes' names
	byTarget  = "target"  // ExternalName services, by the host that they stand for
	// byNodeSelector has the services that are reached on selected nodes, all under one key.
	byNodeSelector, selected = "nodeSelector", "all"
)

// watched is what the API server has, kept by informers. While the server is away it stays as it
// was.
type watched struct {
	services, slices, pods, nodes, namespaces *informer
	// gateways are those of the Gateway API, from when that is there.
	gateways *awaited
	// entries are the WorkloadEntries of a remote cluster, from when their definition is there;
	// nil: they aren't read.
	entries *awaited
	await   func(ctx context.Context)
}

// informer keeps the objects of a kind.
type informer struct {
	*kube.Informer
	kind string
}

// watch makes the informers; of WorkloadEntries, too, if entries are asked for. Changed is told of
// each object that came, changed or went, by one goroutine a kind; failed of what can't be watched,
// which is tried again.
func watch(c *kube.Client, entries bool, changed func(object any), failed func(kind string, err error)) (*watched, error) {
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: changed,
		UpdateFunc: func(old, now any) {
			changed(old) // what it stood for, too
			changed(now)
		},
		DeleteFunc: func(object any) {
			if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			changed(object)
		},
	}
	var failures []error
	informerOf := func(from rest.Interface, kind string, object runtime.Object, indexers cache.Indexers) *informer {
		list := cache.NewListWatchFromClient(from, kind, metav1.NamespaceAll, fields.Everything())
		i, err := kube.Tell(cache.NewSharedIndexInformer(list, object, 0, indexers), handler)
		if err != nil {
			failures = append(failures, err)
			return nil
		}
		tell := func(_ *cache.Reflector, err error) { failed(kind, err) }
		failures = append(failures, i.SetTransform((&keeper{}).lean), i.SetWatchErrorHandler(tell))
		return &informer{i, kind}
	}
	w := &watched{
		services: informerOf(c.Core, "services", &corev1.Service{}, cache.Indexers{byTarget: keysOf(target), byNodeSelector: keysOf(onSelected)}),
		slices: informerOf(c.Discovery, "endpointslices", &discoveryv1.EndpointSlice{},
			cache.Indexers{byService: keysOf(serviceOf), byPod: keysOf(podsOf), byNode: keysOf(nodesOf)}),
		pods:       informerOf(c.Core, "pods", &corev1.Pod{}, cache.Indexers{byNode: keysOf(func(p *pod) []string { return []string{p.node} })}),
		nodes:      informerOf(c.Core, "nodes", &corev1.Node{}, cache.Indexers{}),
		namespaces: informerOf(c.Core, "namespaces", &corev1.Namespace{}, cache.Indexers{}),
		gateways:   &awaited{kind: "Gateway", versions: gatewayVersions},
	}
	if entries {
		w.entries = &awaited{kind: "WorkloadEntry", versions: entryVersions}
	}
	w.await = func(ctx context.Context) {
		var running sync.WaitGroup
		running.Go(func() { w.gateways.run(ctx, c, leanGateway, handler, failed) })
		if w.entries != nil {
			running.Go(func() { w.entries.run(ctx, c, leanEntry, handler, failed) })
		}
		running.Wait()
	}
	return w, errors.Join(failures...)
}

func (w *watched) all() []*informer {
	return []*informer{w.services, w.slices, w.pods, w.nodes, w.namespaces}
}

// run follows the API server until ctx ends, and returns when nothing of it runs any more.
func (w *watched) run(ctx context.Context) {
	var running sync.WaitGroup
	for _, i := range w.all() {
		running.Go(func() { i.RunWithContext(ctx) })
	}
	running.Go(func() { w.await(ctx) })
	running.Wait()
}

// late returns the kinds whose first list is not in.
func (w *watched) late() (out []string) {
	for _, i := range w.all() {
		if !i.HasSynced() {
			out = append(out, i.kind)
		}
	}
	if w.gateways.late() {
		out = append(out, "gateways")
	}
	if w.entries != nil && w.entries.late() {
		out = append(out, "workloadentries")
	}
	return out
}

// keysOf makes an index of a function.
func keysOf[T any](f func(T) []string) cache.IndexFunc {
	return func(object any) ([]string, error) {
		if o, ok := object.(T); ok {
			return f(o), nil
		}
		return nil, nil
	}
}

func target(s *corev1.Service) []string {
	if s.Spec.Type != corev1.ServiceTypeExternalName {
		return nil
	}
	return []string{s.Spec.ExternalName}
}

func onSelected(s *corev1.Service) []string {
	if _, ok := nodeSelector(s); ok {
		return []string{selected}
	}
	return nil
}

func serviceOf(s *discoveryv1.EndpointSlice) []string {
	if name := s.Labels[discoveryv1.LabelServiceName]; name != "" {
		return []string{s.Namespace + "/" + name}
	}
	return nil
}

func podsOf(s *discoveryv1.EndpointSlice) (out []string) {
	for _, e := range s.Endpoints {
		if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
			out = append(out, s.Namespace+"/"+e.TargetRef.Name)
		}
	}
	return out
}

func nodesOf(s *discoveryv1.EndpointSlice) (out []string) {
	for _, e := range s.Endpoints {
		if e.NodeName != nil {
			out = append(out, *e.NodeName)
		}
	}
	return out
}

// found returns what an index has under a key.
func found[T any](i *informer, index, key string) (out []T) {
	objects, err := i.GetIndexer().ByIndex(index, key)
	if err != nil {
		return nil // there is no such index
	}
	for _, o := range objects {
		if is, ok := o.(T); ok {
			out = append(out, is)
		}
	}
	return out
}

// all returns the objects of a kind.
func all[T any](i *informer) (out []*T) {
	for _, o := range i.GetStore().List() {
		if is, ok := o.(*T); ok {
			out = append(out, is)
		}
	}
	return out
}

// get returns an object by its key; nil: it isn't there.
func get[T any](i *informer, key string) *T {
	object, _, _ := i.GetStore().GetByKey(key)
	is, _ := object.(*T)
	return is
}

// patience is how long the first lists may take until it is said which are missing.
const patience = 10 * time.Second
