package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
)

// Objects returns clients that say they are agent: one for questions about the API server, and one
// that reads objects of any kind. They ask nothing yet; an error is of the field kubeconfig.
func (a *Access) Objects(agent string) (about rest.Interface, objects dynamic.Interface, err error) {
	config, err := a.Connect(agent)
	if err != nil {
		return nil, nil, err
	}
	client, err := rest.UnversionedRESTClientFor(dynamic.ConfigFor(config))
	if err != nil {
		return nil, nil, strict.Errorf("kubeconfig", "%v", err)
	}
	return client, dynamic.New(client), nil
}

// Resources asks what an API server has of a version of a group; none, if it hasn't got that
// version. Source: Kubernetes, API discovery, APIResourceList.
func Resources(ctx context.Context, about rest.Interface, of schema.GroupVersion) ([]metav1.APIResource, error) {
	text, err := about.Get().AbsPath("/apis", of.Group, of.Version).SetHeader("Accept", runtime.ContentTypeJSON).DoRaw(ctx)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("what is served of %s: %w", of, err)
	}
	return list.APIResources, nil
}

// Answers are what an API server said that it has, by group and version; nil for a version that it
// hasn't got.
type Answers map[schema.GroupVersion][]metav1.APIResource

// Find returns where the first resource is that match accepts, in the first of versions that has
// one; ok reports whether any has. Versions that were asked for before are not asked for again.
func (a Answers) Find(
	ctx context.Context, about rest.Interface, versions []schema.GroupVersion, match func(metav1.APIResource) bool,
) (at schema.GroupVersionResource, ok bool, err error) {
	for _, of := range versions {
		resources, known := a[of]
		if !known {
			if resources, err = Resources(ctx, about, of); err != nil {
				return at, false, err
			}
			a[of] = resources
		}
		if i := slices.IndexFunc(resources, match); i >= 0 {
			return of.WithResource(resources[i].Name), true, nil
		}
	}
	return at, false, nil
}

// Follow makes an informer of objects; fields narrows them down as a field selector does, ""
// doesn't. It keeps what lean makes of each, tells handler of it, and failed what can't be watched,
// which is tried again. While the API server is away it stays as it was.
func Follow(of dynamic.ResourceInterface, fields string, lean cache.TransformFunc, handler cache.ResourceEventHandler,
	failed func(error)) (*Informer, error) {
	return FollowSelected(of, fields, "", lean, handler, failed)
}

// FollowSelected is Follow of those objects that a label selector matches, too; labels "" doesn't
// narrow them down.
func FollowSelected(of dynamic.ResourceInterface, fields, labels string, lean cache.TransformFunc, handler cache.ResourceEventHandler,
	failed func(error)) (*Informer, error) {
	list := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector, o.LabelSelector = fields, labels
			return of.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector, o.LabelSelector = fields, labels
			return of.Watch(ctx, o)
		},
	}
	return follow(list, &unstructured.Unstructured{}, lean, handler, failed)
}

// FollowMetadata is Follow of objects' metadata alone: of values there is no more here than what is
// copied into annotations, which lean should leave out. Objects are *metav1.PartialObjectMetadata.
func FollowMetadata(of metadata.ResourceInterface, lean cache.TransformFunc, handler cache.ResourceEventHandler, failed func(error)) (*Informer, error) {
	list := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return of.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return of.Watch(ctx, o)
		},
	}
	return follow(list, &metav1.PartialObjectMetadata{}, lean, handler, failed)
}

func follow(list *cache.ListWatch, one runtime.Object, lean cache.TransformFunc, handler cache.ResourceEventHandler, failed func(error)) (*Informer, error) {
	i := cache.NewSharedIndexInformer(list, one, 0, cache.Indexers{})
	if err := i.SetTransform(lean); err != nil {
		return nil, err
	}
	if err := i.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { failed(err) }); err != nil {
		return nil, err
	}
	return Tell(i, handler)
}
