package status

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
)

// Left is what this plugin has left in statuses of a cluster's objects.
type Left struct {
	client  dynamic.Interface
	objects []leftIn
	// controllers are those whose entries are ours.
	controllers []string
}

// leftIn is an object with something of ours in its status.
type leftIn struct {
	at   schema.GroupVersionResource
	kind string
	meta metadata
}

func (l leftIn) String() string {
	return l.kind + "/" + strings.TrimPrefix(l.meta.Namespace+"/"+l.meta.Name, "/")
}

// pageOfList is how many objects are read at once.
const pageOfList = 500

// FindLeft finds what is ours in statuses of an API server's objects, of those of a revision alone
// if it isn't empty: entries of the controllerName (empty: Istio's) that no istiod was the last to
// write, and of Gateways and classes what config/kubernetes was the last to write. Kinds without a
// definition have none.
func FindLeft(ctx context.Context, client dynamic.Interface, controller, revision string) (*Left, error) {
	c := defaults()
	if controller != "" {
		c.Controller = controller
	}
	out := &Left{client: client, controllers: c.controllers()}
	for _, table := range gatewayapi.Tables() {
		k, _ := gatewayapi.Lookup(table)
		var err error
		for _, version := range k.Versions {
			at := schema.GroupVersionResource{Group: k.Group(), Version: version, Resource: kinds.Plural(k.Name())}
			if err = out.find(ctx, at, k.Name(), revision); !apierrors.IsNotFound(err) {
				break
			}
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("%s: %w", table, err)
		}
	}
	return out, nil
}

func (l *Left) find(ctx context.Context, at schema.GroupVersionResource, kind, revision string) error {
	for next := ""; ; {
		page, err := l.client.Resource(at).List(ctx, metav1.ListOptions{Limit: pageOfList, Continue: next})
		if err != nil {
			return err
		}
		for i := range page.Items {
			o, err := ofUnstructured(&page.Items[i])
			if err != nil {
				return err
			}
			if _, changed := strip(o, l.controllers); changed && ofRevision(o, revision) {
				l.objects = append(l.objects, leftIn{at, kind, o.meta})
			}
		}
		if next = page.GetContinue(); next == "" {
			return nil
		}
	}
}

func ofUnstructured(u *unstructured.Unstructured) (*object, error) {
	text, err := u.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return read(text)
}

// ofRevision reports whether an object is one of a revision's; those without a label are the
// default one's. Source: Istio, "Canary upgrades".
func ofRevision(o *object, revision string) bool {
	of, given := o.meta.Labels["istio.io/rev"]
	if !given {
		of = "default"
	}
	return revision == "" || of == revision
}

// Names are KIND/NAMESPACE/NAME of the objects.
func (l *Left) Names() (out []string) {
	for _, o := range l.objects {
		out = append(out, o.String())
	}
	return out
}

// TakeBack takes out of the statuses what is ours, and returns a line for each object in which that
// was done.
func (l *Left) TakeBack(ctx context.Context) (done []string, err error) {
	var errs []error
	for _, o := range l.objects {
		switch err := l.takeBack(ctx, o); {
		case ctx.Err() != nil:
			return done, errors.Join(append(errs, ctx.Err())...)
		case apierrors.IsNotFound(err):
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", o, err))
		default:
			done = append(done, o.String()+": its status is taken back")
		}
	}
	return done, errors.Join(errs...)
}

func (l *Left) takeBack(ctx context.Context, of leftIn) error {
	var client dynamic.ResourceInterface = l.client.Resource(of.at)
	if of.meta.Namespace != "" {
		client = l.client.Resource(of.at).Namespace(of.meta.Namespace)
	}
	var err error
	for range tries {
		var u *unstructured.Unstructured
		if u, err = client.Get(ctx, of.meta.Name, metav1.GetOptions{}); err != nil {
			return err
		}
		o, wrong := ofUnstructured(u)
		if wrong != nil {
			return wrong
		}
		status, changed := strip(o, l.controllers)
		if !changed {
			return nil
		}
		text, wrong := o.with(status)
		if wrong == nil {
			wrong = u.UnmarshalJSON(text)
		}
		if wrong != nil {
			return wrong
		}
		if _, err = client.UpdateStatus(ctx, u, metav1.UpdateOptions{FieldManager: manager}); !apierrors.IsConflict(err) {
			return err
		}
	}
	return err
}
