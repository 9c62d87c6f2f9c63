package secrets

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
)

// watched is one object that is followed, as kubelets follow those of their pods: by its name.
type watched struct {
	object secrets.Object
	stop   context.CancelFunc
	// unwanted is since when nobody asks for it; zero: somebody does.
	unwanted time.Time

	mu      sync.Mutex
	known   bool
	content secrets.Content
	absent  string // why there is no content
	// there: an object was seen, be it that it has gone since.
	there bool
}

// watch follows an object until it is stopped; changed is called when there is something new to
// say.
func watch(ctx context.Context, running *sync.WaitGroup, client *kube.Client, o secrets.Object, changed func(), failed func(error)) (*watched, error) {
	ctx, stop := context.WithCancel(ctx)
	w := &watched{object: o, stop: stop}
	say := func(c secrets.Content, absent string, there bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if there || !w.there {
			w.known, w.content, w.absent, w.there = true, c, absent, there
			changed()
		}
	}
	none := "there is no " + o.String()
	resource := map[string]string{secrets.Secret: "secrets", secrets.ConfigMap: "configmaps"}[o.Kind]
	of := client.Objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace(o.Namespace)
	now := func(object any) {
		if u, ok := object.(*unstructured.Unstructured); ok {
			content, absent := contentOf(o, u)
			say(content, absent, true)
		}
	}
	informer, err := kube.Follow(of, "metadata.name="+o.Name, func(object any) (any, error) { return lean(o.Kind, object), nil },
		cache.ResourceEventHandlerFuncs{
			AddFunc: now, UpdateFunc: func(_, after any) { now(after) }, DeleteFunc: func(any) { say(secrets.Content{}, none, true) },
		}, func(err error) {
			if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
				say(secrets.Content{}, fmt.Sprintf("the control plane may not read %s: let it list and watch %s of its namespace", o, resource), false)
			}
			failed(err)
		})
	if err != nil {
		stop()
		return nil, err
	}
	running.Go(func() { informer.RunWithContext(ctx) })
	running.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			say(secrets.Content{}, none, false)
		}
	})
	return w, nil
}

// says returns what is known of the object, or why there is none; false: nothing yet.
func (w *watched) says() (content secrets.Content, absent string, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.content, w.absent, w.known
}

// lean leaves of an object what is read of it: neither other values nor what was applied.
func lean(kind string, object any) any {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object
	}
	kept := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	kept.SetNamespace(u.GetNamespace())
	kept.SetName(u.GetName())
	kept.SetResourceVersion(u.GetResourceVersion())
	kept.SetUID(u.GetUID())
	for _, field := range []string{"data", "binaryData"} {
		values, _, _ := unstructured.NestedMap(u.Object, field)
		for name := range values {
			if !secrets.Wanted(kind, name) {
				delete(values, name)
			}
		}
		if len(values) > 0 {
			kept.Object[field] = values
		}
	}
	return kept
}

// contentOf reads an object's values. What is too large is said to be absent.
func contentOf(o secrets.Object, u *unstructured.Unstructured) (content secrets.Content, absent string) {
	out := map[string][]byte{}
	for _, field := range []string{"data", "binaryData"} {
		values, _, _ := unstructured.NestedStringMap(u.Object, field)
		for name, text := range values {
			value := []byte(text)
			if field == "binaryData" || o.Kind == secrets.Secret {
				value, _ = base64.StdEncoding.DecodeString(text) // the API server has checked it
			}
			if len(value) > 0 && secrets.Wanted(o.Kind, name) {
				out[name] = value
			}
		}
	}
	if err := secrets.Check(out); errors.Is(err, secrets.ErrTooLarge) {
		return secrets.Content{}, fmt.Sprintf("%s: %v", o, err)
	}
	return secrets.Content{Data: out}, ""
}
