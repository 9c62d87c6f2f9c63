package untaint

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/lead"
)

const (
	// asking is how long a question may take.
	asking = 10 * time.Second
	// label and plugin are those of the CNI plugin's pods. Source: Istio's chart istio-cni.
	label, plugin = "k8s-app", "istio-cni-node"
)

type controller struct {
	config Config
	client *kube.Client
}

// Run takes taints away while this replica leads, until ctx ends.
func (c *controller) Run(ctx context.Context, out sdk.Publisher) error {
	c.config.Report(ctx, out)
	task := func(ctx context.Context) error { return c.lead(ctx, out) }
	if c.config.Alone {
		return task(ctx)
	}
	return lead.Election{
		Objects: sdk.ObjectsOf(out), Log: out.Log, Namespace: c.config.Namespace, Name: leaseName, Duration: c.config.Lease,
	}.Run(ctx, task)
}

// lead watches nodes and the CNI plugin's pods, until ctx ends.
func (c *controller) lead(ctx context.Context, out sdk.Publisher) error {
	w := &work{config: &c.config, client: c.client, out: out, changed: kube.NewChanges[string](), waiting: map[string]bool{}}
	var err error
	if w.nodes, err = w.watch("nodes", cache.NewListWatchFromClient(c.client.Core, "nodes", metav1.NamespaceAll, fields.Everything()),
		&corev1.Node{}, leanNode, func(o any) string { return o.(*corev1.Node).Name }); err != nil {
		return err
	}
	pods := cache.NewFilteredListWatchFromClient(c.client.Core, "pods", c.config.cni(), func(o *metav1.ListOptions) {
		o.LabelSelector = label + "=" + plugin
	})
	if w.pods, err = w.watch("pods", pods, &corev1.Pod{}, leanPod, func(o any) string { return o.(*corev1.Pod).Spec.NodeName }); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { w.nodes.RunWithContext(ctx) })
	running.Go(func() { w.pods.RunWithContext(ctx) })
	w.follow(ctx)
	return nil
}

// work is what there is to do.
type work struct {
	config      *Config
	client      *kube.Client
	out         sdk.Publisher
	said        kube.LogLimiter
	nodes, pods cache.SharedIndexInformer
	// changed are names of nodes of which, or of whose pod, something is new; waiting those of them
	// that are to be looked at.
	changed *kube.Changes[string]
	waiting map[string]bool
}

// watch returns an informer that notes the nodes which objects are, or are on.
func (w *work) watch(what string, of cache.ListerWatcher, kind runtime.Object, lean cache.TransformFunc, node func(o any) string,
) (cache.SharedIndexInformer, error) {
	informer := cache.NewSharedIndexInformer(of, kind, 0, cache.Indexers{})
	if err := informer.SetTransform(lean); err != nil {
		return nil, err
	}
	if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { w.failed(what, err) }); err != nil {
		return nil, err
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { w.changed.Add(node(o)) },
		UpdateFunc: func(_, o any) { w.changed.Add(node(o)) },
	})
	return informer, err
}

// leanNode keeps of a node its taints, leanPod of a pod where it is, and whether it is ready.
func leanNode(object any) (any, error) {
	if n, ok := object.(*corev1.Node); ok {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion}, Spec: corev1.NodeSpec{Taints: n.Spec.Taints},
		}, nil
	}
	return object, nil
}

func leanPod(object any) (any, error) {
	p, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	lean := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion},
		Spec:       corev1.PodSpec{NodeName: p.Spec.NodeName}, Status: corev1.PodStatus{Phase: p.Status.Phase},
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			lean.Status.Conditions = []corev1.PodCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	return lean, nil
}

func (w *work) failed(what string, err error) {
	if w.said.Allow(what, err, time.Now()) {
		w.out.Log(sdk.Warn, "nodes keep their taint; it is tried again", "of", what, "error", err.Error())
	}
}

// follow takes taints from nodes where the CNI plugin is ready, until ctx ends.
func (w *work) follow(ctx context.Context) {
	var tries kube.Retry
	for ctx.Err() == nil {
		for name := range w.changed.Drain() {
			w.waiting[name] = true
		}
		retry := tries.After(w.untaint(ctx))
		select {
		case <-ctx.Done():
		case <-w.changed.Some():
		case <-retry:
		}
	}
}

// untaint looks at the nodes that wait; done: none is left.
func (w *work) untaint(ctx context.Context) (done bool) {
	done = true
	for name := range w.waiting {
		object, _, _ := w.nodes.GetStore().GetByKey(name)
		n, ok := object.(*corev1.Node)
		if !ok || !tainted(n, w.config.Taint) || !w.isReady(name) {
			delete(w.waiting, name) // what comes of it is told
			continue
		}
		switch err := w.take(ctx, n); {
		case err == nil:
			w.out.Log(sdk.Info, "a node's taint is taken away: the CNI plugin is ready", "node", name, "taint", w.config.Taint)
			delete(w.waiting, name)
		case apierrors.IsNotFound(err):
			delete(w.waiting, name)
		case ctx.Err() != nil:
			return true
		default:
			w.failed(name, err)
			done = false // another one's may be taken
		}
	}
	return done
}

// isReady reports whether a pod of the CNI plugin is ready on a node.
func (w *work) isReady(node string) bool {
	return slices.ContainsFunc(w.pods.GetStore().List(), func(o any) bool {
		p, ok := o.(*corev1.Pod)
		return ok && p.Spec.NodeName == node && ready(p)
	})
}

// ready reports whether a pod that was made lean is ready.
func ready(p *corev1.Pod) bool {
	of := p.Status.Conditions
	return p.Status.Phase != corev1.PodFailed && len(of) > 0 && of[0].Status == corev1.ConditionTrue
}

func tainted(n *corev1.Node, key string) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
}

// take takes the taint from a node whose taints are those that were seen.
func (w *work) take(ctx context.Context, n *corev1.Node) error {
	left := slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool { return t.Key == w.config.Taint })
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/spec/taints", "value": n.Spec.Taints}, {"op": "replace", "path": "/spec/taints", "value": left},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	_, err = w.client.Objects.Resource(corev1.SchemeGroupVersion.WithResource("nodes")).Patch(ctx, n.Name, types.JSONPatchType, patch,
		metav1.PatchOptions{FieldManager: agent})
	return err
}
