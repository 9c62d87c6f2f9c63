package ca

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// The ClusterTrustBundle that has the roots, of which signer it is, and what the kind is called.
// Source: Kubernetes, "Certificates and Certificate Signing Requests", cluster trust bundles.
const (
	trustBundle, trustSigner = "istio.io:istiod-ca:root-cert", "istio.io/istiod-ca"
	trustKind, trustResource = "ClusterTrustBundle", "clustertrustbundles"
	trustGroup               = "certificates.k8s.io"
)

// trustVersions are those that the kind is served in, the best first.
var trustVersions = []schema.GroupVersion{{Group: trustGroup, Version: "v1"}, {Group: trustGroup, Version: "v1beta1"}}

var errNoTrustBundles = errors.New("the API server has no ClusterTrustBundle: it is of its feature gate ClusterTrustBundle, and to be enabled by " +
	"--runtime-config; without it, `distribute: namespaces` gives each namespace a ConfigMap")

// announcing keeps the ClusterTrustBundle as it is to be.
type announcing struct {
	*Controller
	out      sdk.Publisher
	said     kube.LogLimiter
	version  schema.GroupVersion
	objects  dynamic.NamespaceableResourceInterface
	informer *kube.Informer
}

// announce writes the roots into a ClusterTrustBundle, and again when it is changed or deleted,
// until ctx ends.
func (c *Controller) announce(ctx context.Context, out sdk.Publisher) error {
	a := &announcing{Controller: c, out: out}
	for pause := retryFirst; a.objects == nil; pause = min(2*pause, retryMost) {
		if err := a.find(ctx); err != nil {
			a.failed(err)
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return nil
			}
		}
	}
	seen := make(chan struct{}, 1)
	note := func(any) {
		select {
		case seen <- struct{}{}:
		default:
		}
	}
	whole := func(o any) (any, error) { return o, nil }
	var err error
	a.informer, err = kube.Follow(a.objects, "metadata.name="+trustBundle, whole,
		cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, now any) { note(now) }, DeleteFunc: note}, a.failed)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { a.informer.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), a.informer.HasSynced) {
		return nil
	}
	var tries kube.Retry
	for {
		err := a.write(ctx)
		if err != nil && ctx.Err() == nil {
			a.failed(err)
		}
		retry := tries.After(err == nil)
		select {
		case <-ctx.Done():
			return nil
		case <-seen:
		case <-a.changed:
		case <-retry:
		}
	}
}

// find finds out in which version the kind is served.
func (a *announcing) find(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	at, ok, err := kube.Answers{}.Find(ctx, a.client.About, trustVersions, func(r metav1.APIResource) bool { return r.Name == trustResource })
	switch {
	case err != nil:
		return err
	case !ok:
		return errNoTrustBundles
	}
	a.version, a.objects = at.GroupVersion(), a.client.Objects.Resource(at)
	return nil
}

func (a *announcing) failed(err error) {
	if a.said.Allow(trustResource, err, time.Now()) {
		a.out.Log(sdk.Warn, "the root is not in the cluster's trust bundle; it is tried again", "error", err.Error())
	}
}

// write writes the bundle, if it differs.
func (a *announcing) write(ctx context.Context) error {
	by := a.signs.Load()
	if by == nil {
		return nil // it will have changed
	}
	text := strings.Join(by.believed(), "")
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	o, there, _ := a.informer.GetStore().GetByKey(trustBundle) // if it is old, what is written is refused, and its change comes
	found, ok := o.(*unstructured.Unstructured)
	if !there || !ok {
		next := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": trustBundle},
			"spec":     map[string]any{"signerName": trustSigner, "trustBundle": text},
		}}
		next.SetGroupVersionKind(a.version.WithKind(trustKind))
		_, err := a.objects.Create(ctx, next, metav1.CreateOptions{})
		return unlessOld(err)
	}
	has, _, _ := unstructured.NestedString(found.Object, "spec", "trustBundle")
	if has == text {
		return nil
	}
	if other := a.claims.foreign([]byte(has)); other != nil {
		return fmt.Errorf("it has the root %s, which is none of this CA's, and is left as it is; delete it, or replace it with --replaceRoot %s",
			named(other), fingerprint(other))
	}
	next := found.DeepCopy()
	if err := unstructured.SetNestedField(next.Object, text, "spec", "trustBundle"); err != nil {
		return err
	}
	_, err := a.objects.Update(ctx, next, metav1.UpdateOptions{})
	return unlessOld(err)
}

// unlessOld is an error that isn't of what is known being old.
func unlessOld(err error) error {
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
