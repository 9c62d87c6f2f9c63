package ca

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/lead"
)

// The ConfigMaps that have the root and the revocation lists, and the Lease of who hands them out,
// as istiod has them.
const (
	rootMap, rootMapKey = "istio-ca-root-cert", "root-cert.pem"
	listMap, listMapKey = "istio-ca-crl", "ca-crl.pem"
	rootLabel           = "istio.io/config"
	rootLease           = "istio-namespace-controller-election"
)

// spared are namespaces that get none.
var spared = []string{"kube-public", "kube-node-lease", "local-path-storage"}

// distribute hands the root out to each namespace, or to the cluster, while this replica leads,
// until ctx ends.
func (c *Controller) distribute(ctx context.Context, out sdk.Publisher) {
	e := lead.Election{Objects: sdk.ObjectsOf(out), Log: out.Log, Namespace: c.config.Namespace, Name: rootLease}
	if err := e.Run(ctx, func(ctx context.Context) error {
		if c.config.Distribute == toCluster {
			return c.announce(ctx, out)
		}
		defer func() { _ = c.reported.clear() }() // the session may be over
		return c.hand(ctx, out)
	}); err != nil {
		out.Log(sdk.Error, "the root can't be handed out", "error", err)
	}
}

// handing is what is known of namespaces and of ConfigMaps in them.
type handing struct {
	*Controller
	out        sdk.Publisher
	said       kube.LogLimiter
	namespaces cache.SharedIndexInformer
	// maps are the ConfigMaps, by name.
	maps    map[string]cache.SharedIndexInformer
	changes *kube.Changes[string]
	// listsKnown reports whether the ConfigMaps of revocation lists are known.
	listsKnown func() bool
}

// hand hands the root out until ctx ends.
func (c *Controller) hand(ctx context.Context, out sdk.Publisher) error {
	h := &handing{Controller: c, out: out, changes: kube.NewChanges[string]()}
	everything := fields.Everything()
	h.namespaces = cache.NewSharedIndexInformer(cache.NewListWatchFromClient(c.client.Core, "namespaces", "", everything),
		&corev1.Namespace{}, 0, cache.Indexers{})
	h.maps = map[string]cache.SharedIndexInformer{}
	for _, name := range []string{rootMap, listMap} {
		only := fields.OneTermEqualSelector("metadata.name", name)
		h.maps[name] = cache.NewSharedIndexInformer(cache.NewListWatchFromClient(c.client.Core, "configmaps", "", only),
			&corev1.ConfigMap{}, 0, cache.Indexers{})
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	told := map[string]*kube.Informer{}
	for what, i := range map[string]cache.SharedIndexInformer{"namespaces": h.namespaces, rootMap: h.maps[rootMap], listMap: h.maps[listMap]} {
		if err := i.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { h.failed(what, err) }); err != nil {
			return err
		}
		one, err := kube.Tell(i, cache.ResourceEventHandlerFuncs{AddFunc: h.note, UpdateFunc: func(_, now any) { h.note(now) }, DeleteFunc: h.note})
		if err != nil {
			return err
		}
		told[what] = one
		running.Go(func() { i.RunWithContext(ctx) })
	}
	h.listsKnown = told[listMap].HasSynced
	running.Go(func() { // roots don't wait for it: an account may lack the right
		if cache.WaitForCacheSync(ctx.Done(), h.listsKnown) {
			c.change()
		}
	})
	if !cache.WaitForCacheSync(ctx.Done(), told["namespaces"].HasSynced, told[rootMap].HasSynced) {
		return nil
	}
	h.work(ctx)
	return nil
}

// note notes the namespace of an object.
func (h *handing) note(o any) {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	switch x := o.(type) {
	case *corev1.Namespace:
		h.changes.Add(x.Name)
	case *corev1.ConfigMap:
		h.changes.Add(x.Namespace)
	}
}

func (h *handing) failed(what string, err error) {
	if h.said.Allow(what, err, time.Now()) {
		h.out.Log(sdk.Warn, "the root is not handed out to namespaces; it is tried again", "of", what, "error", err.Error())
	}
}

// work writes what differs until ctx ends.
func (h *handing) work(ctx context.Context) {
	waiting := map[string]bool{}
	var tries kube.Retry
	for {
		for name := range h.changes.Drain() {
			waiting[name] = true
		}
		retry := tries.After(h.write(ctx, waiting))
		select {
		case <-ctx.Done():
			return
		case <-h.changes.Some():
		case <-h.changed:
			for _, key := range h.namespaces.GetStore().ListKeys() {
				waiting[key] = true
			}
		case <-retry:
		}
	}
}

// write writes the ConfigMaps of namespaces; done: all could be.
func (h *handing) write(ctx context.Context, names map[string]bool) (done bool) {
	by := h.signs.Load()
	if by == nil {
		return true // it will have changed
	}
	handed := []content{{rootMap, rootMapKey, strings.Join(by.believed(), "")}}
	if by.lists != nil && by.lists.Wrong(time.Now()) == "" && h.listsKnown() {
		handed = append(handed, content{listMap, listMapKey, strings.Join(by.lists.Texts, "")})
	}
	for name := range names {
		var err error
		for _, c := range handed {
			if err == nil {
				err = h.one(ctx, name, c)
			}
		}
		switch {
		case ctx.Err() != nil:
			return true
		case err == nil, apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), apierrors.IsNotFound(err):
			delete(names, name)
		case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err): // it comes again with the change
			delete(names, name)
		default:
			h.failed("configmaps", err)
			return false // what is wrong with one is wrong with all
		}
	}
	return true
}

// asking is how long a question to the API server may take.
const asking = 10 * time.Second

// content is what a ConfigMap has under its only key.
type content struct{ name, key, text string }

// one writes a ConfigMap of a namespace, if it differs.
func (h *handing) one(ctx context.Context, namespace string, c content) error {
	o, there, _ := h.namespaces.GetStore().GetByKey(namespace)
	if c.name == rootMap && !there {
		_, err := h.reported.leave(namespace, nil)
		return err
	}
	if n, ok := o.(*corev1.Namespace); !there || !ok || n.DeletionTimestamp != nil || slices.Contains(spared, namespace) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	core := h.client.Core
	o, there, _ = h.maps[c.name].GetStore().GetByKey(namespace + "/" + c.name)
	found, ok := o.(*corev1.ConfigMap)
	if !there || !ok {
		if c.name == rootMap {
			if _, err := h.reported.leave(namespace, nil); err != nil {
				return err
			}
		}
		return core.Post().Namespace(namespace).Resource("configmaps").Body(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: c.name, Labels: map[string]string{rootLabel: "true"}},
			Data:       map[string]string{c.key: c.text},
		}).Do(ctx).Error()
	}
	if c.name == rootMap {
		if left, err := h.leaves(found); left || err != nil {
			return err
		}
	}
	if found.Data[c.key] == c.text && len(found.Data) == 1 {
		return nil
	}
	next := found.DeepCopy()
	next.Data = map[string]string{c.key: c.text}
	return core.Put().Namespace(namespace).Resource("configmaps").Name(c.name).Body(next).Do(ctx).Error()
}
