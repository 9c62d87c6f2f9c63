package kubernetes

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
)

// lookAgain is when the API server is asked again for a definition that it had not, unreached how
// soon while it can't be asked.
const lookAgain, unreached = 5 * time.Second, time.Second

// awaited is the informer of a kind whose definition may come later.
type awaited struct {
	kind     string
	versions []schema.GroupVersion // the best first

	mu sync.Mutex
	// is nil until there is a definition. looked: the API server has said whether there is one;
	// denied: it doesn't let it be read.
	is             *informer
	looked, denied bool
}

// informer returns what is kept; nil: there is no definition yet.
func (a *awaited) informer() *informer {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.is
}

// late reports whether it isn't known yet which objects there are. One that may not be read is not
// waited for: it was told.
func (a *awaited) late() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.looked || a.is != nil && !a.denied && !a.is.HasSynced()
}

// run follows the objects from when there is a definition until ctx ends; failed is told why not.
func (a *awaited) run(ctx context.Context, c *kube.Client, lean cache.TransformFunc, handler cache.ResourceEventHandler, failed func(kind string, err error)) {
	for ctx.Err() == nil {
		again := lookAgain
		at, ok, err := a.find(ctx, c)
		if err == nil && ok {
			err = a.follow(ctx, c, at, lean, handler, failed)
		}
		if err != nil {
			failed(a.kind, err)
			again = unreached
		}
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}

// find asks where the objects are; ok: there is a definition.
func (a *awaited) find(ctx context.Context, c *kube.Client) (at schema.GroupVersionResource, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	at, ok, err = kube.Answers{}.Find(ctx, c.About, a.versions, func(r metav1.APIResource) bool { return r.Kind == a.kind })
	if err != nil || ok {
		return at, ok, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.looked = true
	return at, false, nil
}

// follow follows the objects until ctx ends, be their definition deleted meanwhile or not.
func (a *awaited) follow(ctx context.Context, c *kube.Client, at schema.GroupVersionResource, lean cache.TransformFunc, handler cache.ResourceEventHandler,
	failed func(kind string, err error)) error {
	i, err := kube.Follow(c.Objects.Resource(at), "", lean, handler, func(err error) {
		if apierrors.IsForbidden(err) {
			a.mu.Lock()
			a.denied = true
			a.mu.Unlock()
		}
		failed(at.Resource, err)
	})
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.is, a.looked = &informer{i, at.Resource}, true
	a.mu.Unlock()
	i.RunWithContext(ctx)
	return nil
}
