package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	gateway "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// gatewaysResource is where an API server has Gateways.
var gatewaysResource = schema.GroupVersion(gateway.GroupVersion).WithResource("gateways")

// asking is how long a request may take.
const asking = 10 * time.Second

// classDefaults is the label of ConfigMaps that have defaults of a class.
const classDefaults = "gateway.istio.io/defaults-for-class"

// predecessor is the field manager of istiod's controller.
const predecessor = "istio.io/gateway-controller"

// child is an object that was made for a Gateway, by us or by istiod.
type child struct {
	metav1.ObjectMeta
	// content is the object as JSON, without status and what changes by itself.
	content []byte
	// fields are those that are ours; empty: we have never applied it.
	fields []byte
	// inherited: istiod's controller still owns fields. scaled: somebody has set the number of
	// replicas by the subresource scale, as autoscalers do.
	inherited, scaled bool
}

// gatewayKey is the Gateway that it was made for.
func (c *child) gatewayKey() string { return c.Namespace + "/" + c.Labels[nameLabel] }

// same reports whether two versions differ in nothing that counts.
func (c *child) same(o *child) bool {
	return c.UID == o.UID && bytes.Equal(c.content, o.content) && bytes.Equal(c.fields, o.fields) && c.inherited == o.inherited && c.scaled == o.scaled
}

// leanChild keeps of an object what a child has.
func leanChild(object any) (any, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	return newChild(u)
}

func newChild(u *unstructured.Unstructured) (*child, error) {
	c := &child{ObjectMeta: metav1.ObjectMeta{
		Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(), Labels: u.GetLabels(),
		OwnerReferences: u.GetOwnerReferences(),
	}}
	for _, e := range u.GetManagedFields() {
		switch {
		case e.FieldsV1 == nil:
		case e.Manager == agent && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "":
			c.fields = e.FieldsV1.GetRawBytes()
		case e.Manager == predecessor && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "":
			c.inherited = true
		case e.Subresource == "scale":
			c.scaled = c.scaled || bytes.Contains(e.FieldsV1.GetRawBytes(), []byte(`"f:replicas"`))
		}
	}
	content := maps.Clone(u.Object)
	delete(content, "status")
	if meta, ok := content["metadata"].(map[string]any); ok {
		meta = maps.Clone(meta)
		for _, k := range []string{"managedFields", "resourceVersion", "generation", "creationTimestamp"} {
			delete(meta, k)
		}
		content["metadata"] = meta
	}
	var err error
	c.content, err = json.Marshal(content)
	return c, err
}

// leanName keeps of metadata which object it is of, and which version of that.
func leanName(object any) (any, error) {
	m, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	return &metav1.PartialObjectMetadata{TypeMeta: m.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Generation: m.Generation,
		ManagedFields: slices.DeleteFunc(slices.Clone(m.ManagedFields), func(e metav1.ManagedFieldsEntry) bool { return !toldByUs(e) }),
	}}, nil
}

// toldByUs reports whether an entry of managedFields is of what we have told in a status.
func toldByUs(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == agent && e.Subresource == "status" && e.Operation == metav1.ManagedFieldsOperationApply
}

// change is what has changed in the cluster: objects of a Gateway, a ConfigMap, or what counts for
// all.
type change struct{ gateway, configMap string }

// byGateway is the index of children by the Gateway that they were made for.
const byGateway = "gateway"

// cluster is what is followed, and written.
type cluster struct {
	config   *Config
	client   *kube.Client
	out      sdk.Publisher
	said     *kube.LogLimiter
	children map[*part]*kube.Informer
	// gateways and configMaps are metadata alone; classes and values whole ConfigMaps.
	gateways, configMaps, classes, values *kube.Informer
	changed                               *kube.Changes[change]
}

// follow makes the informers of a cluster; run runs them.
func follow(config *Config, client *kube.Client, out sdk.Publisher) (c *cluster, err error) {
	c = &cluster{config: config, client: client, out: out, said: &kube.LogLimiter{}, children: map[*part]*kube.Informer{}, changed: kube.NewChanges[change]()}
	for _, p := range allParts() {
		of := client.Objects.Resource(p.resource)
		if c.children[p], err = kube.FollowSelected(of, "", madeForGateways, leanChild, c.ofChildren(), c.failed(p.resource.Resource)); err != nil {
			return nil, err
		}
		err = c.children[p].AddIndexers(cache.Indexers{byGateway: func(o any) ([]string, error) {
			if o, ok := o.(*child); ok {
				return []string{o.gatewayKey()}, nil
			}
			return nil, nil
		}})
		if err != nil {
			return nil, err
		}
	}
	gateways := client.Metadata.Resource(gatewaysResource)
	if c.gateways, err = kube.FollowMetadata(gateways, leanName,
		told(func(key string) change { return change{gateway: key} }, c.changed), c.failed("gateways")); err != nil {
		return nil, err
	}
	of := corev1.SchemeGroupVersion.WithResource("configmaps")
	named := told(func(key string) change { return change{configMap: key} }, c.changed)
	if c.configMaps, err = kube.FollowMetadata(client.Metadata.Resource(of), leanName, named, c.failed("configmaps")); err != nil {
		return nil, err
	}
	all := told(func(string) change { return change{} }, c.changed)
	own := client.Objects.Resource(of).Namespace(config.Namespace)
	if c.classes, err = kube.FollowSelected(own, "", classDefaults, leanData, all, c.failed("configmaps")); err != nil {
		return nil, err
	}
	c.values, err = kube.Follow(own, "metadata.name="+config.values(), leanData, all, c.failed("configmaps"))
	return c, err
}

// leanData keeps of a ConfigMap its data, and what it is called.
func leanData(object any) (any, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	data, _, _ := unstructured.NestedStringMap(u.Object, "data")
	return &corev1.ConfigMap{Data: data, ObjectMeta: metav1.ObjectMeta{
		Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(),
		Labels: u.GetLabels(), CreationTimestamp: u.GetCreationTimestamp(),
	}}, nil
}

// told notes changes of objects by their keys.
func told(of func(key string) change, changed *kube.Changes[change]) cache.ResourceEventHandler {
	note := func(o any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o); err == nil {
			changed.Add(of(key))
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, now any) { note(now) }, DeleteFunc: note}
}

// ofChildren notes changes of objects by the Gateways that they were made for.
func (c *cluster) ofChildren() cache.ResourceEventHandler {
	note := func(o any) {
		if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = gone.Obj
		}
		if o, ok := o.(*child); ok {
			c.changed.Add(change{gateway: o.gatewayKey()})
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: note, DeleteFunc: note, UpdateFunc: func(was, now any) {
		a, old := was.(*child)
		b, ok := now.(*child)
		if old && ok && a.same(b) {
			return
		}
		note(was)
		note(now)
	}}
}

func (c *cluster) failed(what string) func(error) {
	return func(err error) {
		if c.said.Allow(what, err, time.Now()) {
			c.out.Log(sdk.Warn, "the cluster can't be asked about gateways; it is tried again", "of", what, "error", err.Error())
		}
	}
}

// run runs the informers until ctx ends, and returns when they know what there is.
func (c *cluster) run(ctx context.Context, running *sync.WaitGroup) bool {
	all := []*kube.Informer{c.gateways, c.configMaps, c.classes, c.values}
	for _, p := range allParts() {
		all = append(all, c.children[p])
	}
	var synced []cache.InformerSynced
	for _, i := range all {
		running.Go(func() { i.RunWithContext(ctx) })
		synced = append(synced, i.HasSynced)
	}
	return cache.WaitForCacheSync(ctx.Done(), synced...)
}

// of returns the objects of a kind that were made for a Gateway.
func (c *cluster) of(p *part, key string) (out []*child) {
	list, _ := c.children[p].GetIndexer().ByIndex(byGateway, key)
	for _, o := range list {
		if o, ok := o.(*child); ok {
			out = append(out, o)
		}
	}
	return out
}

// made returns an object that was made for whichever Gateway; nil: there is none.
func (c *cluster) made(p *part, namespace, name string) *child {
	o, _, _ := c.children[p].GetStore().GetByKey(namespace + "/" + name)
	out, _ := o.(*child)
	return out
}

func (c *cluster) resource(p *part, namespace string) dynamic.ResourceInterface {
	return c.client.Objects.Resource(p.resource).Namespace(namespace)
}

// get asks for an object, whosever it is; nil: there is none.
func (c *cluster) get(ctx context.Context, p *part, namespace, name string) (*child, error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	u, err := c.resource(p, namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return newChild(u)
}

// apply writes an object; version is the one that it must have, empty: it is not known. manager is
// whose fields these are.
func (c *cluster) apply(ctx context.Context, p *part, object map[string]any, namespace, name, version, manager string) (*child, error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	u := &unstructured.Unstructured{Object: maps.Clone(object)}
	meta, _ := u.Object["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	if version != "" {
		meta["resourceVersion"] = version
	}
	u.Object["metadata"] = meta
	now, err := c.resource(p, namespace).Apply(ctx, name, u, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err != nil {
		return nil, err
	}
	return newChild(now)
}

// remove deletes an object, if it is the one that is known.
func (c *cluster) remove(ctx context.Context, p *part, o *child) error {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	background := metav1.DeletePropagationBackground
	err := c.resource(p, o.Namespace).Delete(ctx, o.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion}, PropagationPolicy: &background,
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// data asks for a ConfigMap's.
func (c *cluster) data(ctx context.Context, namespace, name string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	u, err := c.client.Objects.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	data, _, _ := unstructured.NestedStringMap(u.Object, "data")
	return data, nil
}

// defaultsOf are the defaults of a class: of several ConfigMaps those of the oldest.
func (c *cluster) defaultsOf(class string) map[string]string {
	var oldest *corev1.ConfigMap
	for _, o := range c.classes.GetStore().List() {
		m, ok := o.(*corev1.ConfigMap)
		if !ok || m.Labels[classDefaults] != class {
			continue
		}
		older := oldest == nil || m.CreationTimestamp.Before(&oldest.CreationTimestamp) ||
			m.CreationTimestamp.Equal(&oldest.CreationTimestamp) && m.Name < oldest.Name
		if older {
			oldest = m
		}
	}
	if oldest == nil {
		return nil
	}
	return oldest.Data
}
