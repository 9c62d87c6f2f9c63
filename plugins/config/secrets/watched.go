package secrets

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
)

// watched is one object that is followed. follower.mu guards it.
type watched struct {
	object secrets.Object
	in     *space
	// own is its watch; nil: it is read when its namespace's watch says so, or, if it is polled,
	// again and again.
	own    *ownWatch
	polled bool
	// version is the one that was read last, empty if there was none; busy: it is being read.
	version string
	busy    bool

	known   bool
	content secrets.Content
	absent  string // why there is no content
	// there: an object was seen, be it that it has gone since.
	there bool
}

// ownWatch is the watch of a single object, by its name, as kubelets watch those of their pods.
type ownWatch struct{ stop context.CancelFunc }

// resourceOf returns the resource of a kind.
func resourceOf(kind string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: map[string]string{secrets.Secret: "secrets", secrets.ConfigMap: "configmaps"}[kind]}
}

// none is what is said of an object that is not there.
func none(o secrets.Object) string { return "there is no " + o.String() }

// denied is what is said of an object that the control plane may not read.
func denied(o secrets.Object) string {
	return fmt.Sprintf("the control plane may not read %s: let it list and watch %s of its namespace", o, resourceOf(o.Kind).Resource)
}

func forbidden(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }

// say notes what is known of an object. What is not there, or may not be read, says nothing
// against one that was seen. f.mu is held.
func (f *follower) say(w *watched, c secrets.Content, absent string, there bool) {
	if !there && w.there {
		return
	}
	same := w.known && w.absent == absent && maps.EqualFunc(w.content.Data, c.Data, bytes.Equal)
	w.known, w.content, w.absent, w.there = true, c, absent, there
	if !same {
		f.changed(w.object)
	}
}

// watch follows an object by its name. f.mu is held.
func (f *follower) watch(w *watched) {
	o := w.object
	ctx, stop := context.WithCancel(f.ctx)
	own := &ownWatch{stop}
	// heard does something as long as the watch counts.
	heard := func(do func()) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if w.own == own {
			do()
		}
	}
	now := func(object any) {
		u, ok := object.(*unstructured.Unstructured)
		if !ok {
			return
		}
		content, absent := contentOf(o, u)
		heard(func() {
			w.version = u.GetResourceVersion()
			f.say(w, content, absent, true)
		})
	}
	of := f.client.Objects.Resource(resourceOf(o.Kind)).Namespace(o.Namespace)
	informer, err := kube.Follow(of, "metadata.name="+o.Name, func(object any) (any, error) { return lean(o.Kind, object), nil },
		cache.ResourceEventHandlerFuncs{
			AddFunc: now, UpdateFunc: func(_, after any) { now(after) },
			DeleteFunc: func(any) {
				heard(func() {
					w.version = ""
					f.say(w, secrets.Content{}, none(o), true)
				})
			},
		}, func(err error) {
			if forbidden(err) {
				heard(func() { f.say(w, secrets.Content{}, denied(o), false) })
			}
			f.failed(w.in.String(), err)
		})
	if err != nil {
		stop()
		f.failed(w.in.String(), err)
		return
	}
	w.own = own
	f.singles[o.Kind]++
	f.running.Go(func() { informer.RunWithContext(ctx) })
	f.running.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			heard(func() { f.say(w, secrets.Content{}, none(o), false) })
		}
	})
}

// unwatch ends an object's own watch, if it has one. f.mu is held.
func (f *follower) unwatch(w *watched) {
	if w.own != nil {
		w.own.stop()
		w.own = nil
		f.singles[w.object.Kind]--
	}
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
