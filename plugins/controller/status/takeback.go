package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
)

// Left is what this plugin has left in statuses of a cluster's objects.
type Left struct {
	about   rest.Interface
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
// write, and of Gateways and classes what config/kubernetes was the last to write. about is a
// client of the API server. Kinds without a definition have none.
func FindLeft(ctx context.Context, about rest.Interface, controller, revision string) (*Left, error) {
	c := defaults()
	if controller != "" {
		c.Controller = controller
	}
	out := &Left{about: about, controllers: c.controllers()}
	before := kube.Answers{}
	for _, table := range gatewayapi.Tables() {
		k, _ := gatewayapi.Lookup(table)
		var versions []schema.GroupVersion
		for _, v := range k.Versions {
			versions = append(versions, schema.GroupVersion{Group: k.Group(), Version: v})
		}
		at, ok, err := before.Find(ctx, about, versions, func(r metav1.APIResource) bool { return r.Kind == k.Name() && slices.Contains(r.Verbs, "list") })
		if err == nil && ok {
			err = out.find(ctx, at, k.Name(), revision)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", table, err)
		}
	}
	return out, nil
}

func (l *Left) find(ctx context.Context, at schema.GroupVersionResource, kind, revision string) error {
	for next := ""; ; {
		text, err := l.about.Get().AbsPath("/apis", at.Group, at.Version, at.Resource).Param("limit", strconv.Itoa(pageOfList)).Param("continue", next).Do(ctx).Raw()
		if err != nil {
			return err
		}
		var page struct {
			Metadata metav1.ListMeta
			Items    []json.RawMessage
		}
		if err := json.Unmarshal(text, &page); err != nil {
			return err
		}
		for _, item := range page.Items {
			o, err := read(item)
			if err != nil {
				return err
			}
			if _, changed := strip(o, l.controllers); changed && ofRevision(o, revision) {
				l.objects = append(l.objects, leftIn{at, kind, o.meta})
			}
		}
		if next = page.Metadata.Continue; next == "" {
			return nil
		}
	}
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
	path := []string{"/apis", of.at.Group, of.at.Version, of.at.Resource, of.meta.Name}
	if of.meta.Namespace != "" {
		path = []string{"/apis", of.at.Group, of.at.Version, "namespaces", of.meta.Namespace, of.at.Resource, of.meta.Name}
	}
	var err error
	for range tries {
		var text []byte
		if text, err = l.about.Get().AbsPath(path...).Do(ctx).Raw(); err != nil {
			return err
		}
		var o *object
		if o, err = read(text); err != nil {
			return err
		}
		status, changed := strip(o, l.controllers)
		if !changed {
			return nil
		}
		if text, err = o.with(status); err != nil {
			return err
		}
		err = l.about.Put().AbsPath(append(path, "status")...).Param("fieldManager", manager).SetHeader("Content-Type", "application/json").Body(text).Do(ctx).Error()
		if !apierrors.IsConflict(err) {
			return err
		}
	}
	return err
}
