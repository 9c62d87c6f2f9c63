package kubernetes

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// server is the API server: what it serves, and the objects that it has.
type server struct {
	about   rest.Interface
	objects dynamic.Interface

	mu    sync.Mutex
	found map[string]schema.GroupVersionResource
}

// connect makes the clients of a config. It asks nothing of the API server.
func connect(c Config) (*server, error) {
	about, objects, err := c.Objects("coxswain/config-kubernetes")
	if err != nil {
		return nil, err
	}
	return &server{about: about, objects: objects, found: map[string]schema.GroupVersionResource{}}, nil
}

// serves returns where a kind's objects are, in the first of its versions that the API server has;
// ok: it has one. What was asked before, while it looked for other kinds, is not asked again.
func (s *server) serves(ctx context.Context, k kinds.Kind, before kube.Answers) (at schema.GroupVersionResource, ok bool, err error) {
	var versions []schema.GroupVersion
	for _, version := range k.Versions {
		versions = append(versions, schema.GroupVersion{Group: k.Group(), Version: version})
	}
	of, _ := kinds.Other(k.Table)
	return before.Find(ctx, s.about, versions, func(r metav1.APIResource) bool {
		return r.Kind == k.Name() && r.Namespaced != of.Cluster && slices.Contains(r.Verbs, "watch")
	})
}

// find is serves for who asks often: where a kind is served is asked once.
func (s *server) find(ctx context.Context, k kinds.Kind) (at schema.GroupVersionResource, ok bool, err error) {
	s.mu.Lock()
	at, ok = s.found[k.Table]
	s.mu.Unlock()
	if ok {
		return at, true, nil
	}
	if at, ok, err = s.serves(ctx, k, kube.Answers{}); ok && err == nil {
		s.mu.Lock()
		s.found[k.Table] = at
		s.mu.Unlock()
	}
	return at, ok, err
}

// forget makes find ask again where a kind is served.
func (s *server) forget(table string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.found, table)
}

// object is what is kept of one: its text as JSON, without what nothing reads.
type object struct {
	metav1.ObjectMeta
	version string // apiVersion
	text    []byte
	// refused: its status says that proxies refuse something that was made from it.
	refused bool
}

// repeats are annotations that say again what the object says.
var repeats = []string{"kubectl.kubernetes.io/last-applied-configuration"}

// lean makes an object of what the API server sent.
func lean(sent any) (any, error) {
	u, ok := sent.(*unstructured.Unstructured)
	if !ok {
		return sent, nil // kept already
	}
	annotations := u.GetAnnotations()
	for _, a := range repeats {
		delete(annotations, a)
	}
	content := map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "metadata": map[string]any{
		"name": u.GetName(), "namespace": u.GetNamespace(), "labels": u.GetLabels(), "annotations": annotations, "creationTimestamp": u.GetCreationTimestamp(),
	}}
	parts := []string{"spec", "status"}
	if _, ok := gatewayapi.Lookup(u.GroupVersionKind().Group + "/" + u.GetKind()); ok {
		parts = parts[:1] // their statuses are written, not read: a change of one changes nothing
	}
	for _, key := range parts {
		if part, ok := u.Object[key]; ok {
			content[key] = part
		}
	}
	text, err := json.Marshal(content)
	return &object{metav1.ObjectMeta{
		Name: u.GetName(), Namespace: u.GetNamespace(), ResourceVersion: u.GetResourceVersion(),
		Labels: u.GetLabels(), UID: u.GetUID(), Generation: u.GetGeneration(),
	}, u.GetAPIVersion(), text, saysRefused(u)}, err
}

// watched are the kinds that the API server serves, kept by informers. While the server is away
// they stay as they were, and so they do when it has lost a kind's definition: it tells the end of
// each object before.
type watched struct {
	server  *server
	changed func(key)
	failed  func(table string, err error)

	running   sync.WaitGroup
	informers map[string]cache.SharedIndexInformer
	// denied are kinds of the Gateway API that this account may not read: nothing waits for them.
	denied sync.Map
}

// key is an object's table and its key in it, NAMESPACE/NAME.
type key struct{ table, name string }

// add starts to watch a kind, until ctx ends. lean says what is kept of its objects.
func (w *watched) add(ctx context.Context, table string, at schema.GroupVersionResource, lean cache.TransformFunc) error {
	note := func(of any) {
		if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(of); err == nil {
			w.changed(key{table, name})
		}
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: note, DeleteFunc: note,
		UpdateFunc: func(old, now any) {
			before, _ := old.(*object)
			after, _ := now.(*object)
			if before == nil || after == nil || before.UID != after.UID || !bytes.Equal(before.text, after.text) {
				note(now)
			}
		},
	}
	i, err := kube.Follow(w.server.objects.Resource(at), "", lean, handler, func(err error) { w.failed(table, err) })
	if err != nil {
		return err
	}
	w.informers[table] = i
	w.running.Go(func() { i.RunWithContext(ctx) })
	return nil
}

// addNamespaces starts to watch namespaces, if none did. changed is told of each, and of "" once
// all are known.
func (w *watched) addNamespaces(ctx context.Context) error {
	if w.informers[state.Namespaces] != nil {
		return nil
	}
	if err := w.add(ctx, state.Namespaces, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, leanNamespace); err != nil {
		return err
	}
	all := w.informers[state.Namespaces]
	w.running.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), all.HasSynced) {
			w.changed(key{state.Namespaces, ""})
		}
	})
	return nil
}

// leanNamespace keeps of a namespace its labels.
func leanNamespace(sent any) (any, error) {
	u, ok := sent.(*unstructured.Unstructured)
	if !ok {
		return sent, nil // kept already
	}
	text, err := json.Marshal(u.GetLabels())
	return &object{ObjectMeta: metav1.ObjectMeta{Name: u.GetName(), ResourceVersion: u.GetResourceVersion(), Labels: u.GetLabels()}, text: text}, err
}

// within yields the objects of namespaces.
func (w *watched) within(concerns func(namespace string) bool) iter.Seq[key] {
	return func(yield func(key) bool) {
		for table, i := range w.informers {
			if table == state.Namespaces {
				continue
			}
			for _, name := range i.GetStore().ListKeys() {
				if namespace, _ := kinds.SplitKey(name); concerns(namespace) && !yield(key{table, name}) {
					return
				}
			}
		}
	}
}

// late returns the kinds whose first list is not in, sorted.
func (w *watched) late() (out []string) {
	for table, i := range w.informers {
		if !i.HasSynced() {
			out = append(out, table)
		}
	}
	slices.Sort(out)
	return out
}

// get returns an object; nil: there is none.
func (w *watched) get(k key) *object {
	i := w.informers[k.table]
	if i == nil {
		return nil
	}
	found, _, _ := i.GetStore().GetByKey(k.name)
	o, _ := found.(*object)
	return o
}
