package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
)

// Leaving takes what this plugin has written out of a cluster.
type Leaving struct {
	// Kubeconfig and Context say which cluster; empty: as kubectl does.
	Kubeconfig, Context string
	// Namespace is the control plane's, which has the Lease; In is the namespace whose objects go,
	// empty: all.
	Namespace, In string
	// Keep: objects stay, as istiod's, which goes on with them. Otherwise they are deleted.
	Keep bool
	// Force: it is not looked whether somebody deploys gateways.
	Force bool
	// Say is told of each object.
	Say func(text string)
}

// page is how many objects are asked for at once.
const page = 500

// Run does it. The error says what could not be done; what was done stays done.
func (l Leaving) Run(ctx context.Context) error {
	access := kube.DefaultAccess()
	access.Kubeconfig, access.Context = l.Kubeconfig, l.Context
	client, err := access.Client(agent)
	if err != nil {
		return err
	}
	c := &cluster{client: client}
	if !l.Force {
		if err := c.nobody(ctx, l.Namespace); err != nil {
			return err
		}
	}
	for _, p := range slices.Backward(allParts()) {
		if err := c.each(ctx, p, l.In, func(u *unstructured.Unstructured, o *child) error { return l.leave(ctx, c, p, u, o) }); err != nil {
			return fmt.Errorf("%s: %w", p.resource.Resource, err)
		}
	}
	return c.untell(ctx, l.In)
}

// leave deletes an object of ours, or hands it over.
func (l Leaving) leave(ctx context.Context, c *cluster, p *part, u *unstructured.Unstructured, o *child) error {
	if len(o.fields) == 0 {
		return nil
	}
	what, err := "deleted", error(nil)
	if l.Keep {
		what, err = "kept", c.handOver(ctx, p, u)
	} else {
		err = c.remove(ctx, p, o)
	}
	if err != nil {
		return fmt.Errorf("%s/%s: %w", o.Namespace, o.Name, err)
	}
	l.Say(fmt.Sprintf("%s %s/%s %s", p.kind, o.Namespace, o.Name, what))
	return nil
}

// nobody is an error while somebody deploys gateways: what is deleted would come back.
func (c *cluster) nobody(ctx context.Context, namespace string) error {
	of := c.client.Objects.Resource(coordination.SchemeGroupVersion.WithResource("leases")).Namespace(namespace)
	all, err := of.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, u := range all.Items {
		if !strings.HasPrefix(u.GetName(), leaseName) {
			continue
		}
		var l coordination.Lease
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &l); err != nil {
			return err
		}
		if s := l.Spec; s.HolderIdentity != nil && *s.HolderIdentity != "" && s.RenewTime != nil && s.LeaseDurationSeconds != nil &&
			time.Since(s.RenewTime.Time) < time.Duration(*s.LeaseDurationSeconds)*time.Second {
			return fmt.Errorf(
				"%s deploys gateways at the moment (Lease %s/%s), and what is deleted would come back: stop it, or take controller/gateway out of its set",
				*s.HolderIdentity, namespace, l.Name,
			)
		}
	}
	return nil
}

// each calls of for all objects of a kind that were made for Gateways.
func (c *cluster) each(ctx context.Context, p *part, namespace string, of func(*unstructured.Unstructured, *child) error) error {
	var errs []error
	for next := ""; ; {
		list, err := c.resource(p, namespace).List(ctx, metav1.ListOptions{LabelSelector: madeForGateways, Limit: page, Continue: next})
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		for i := range list.Items {
			o, err := newChild(&list.Items[i])
			if err == nil {
				err = of(&list.Items[i], o)
			}
			if err != nil {
				errs = append(errs, err)
			}
		}
		if next = list.GetContinue(); next == "" {
			return errors.Join(errs...)
		}
	}
}

// handOver makes our fields of an object istiod's.
func (c *cluster) handOver(ctx context.Context, p *part, u *unstructured.Unstructured) error {
	fields := u.GetManagedFields()
	theirs := slices.ContainsFunc(fields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == predecessor && e.Subresource == "" })
	var out []metav1.ManagedFieldsEntry
	for _, e := range fields {
		if e.Manager == agent && e.Subresource == "" {
			if theirs {
				continue
			}
			e.Manager = predecessor
		}
		out = append(out, e)
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/resourceVersion", "value": u.GetResourceVersion()},
		{"op": "replace", "path": "/metadata/managedFields", "value": out},
	})
	if err != nil {
		return err
	}
	_, err = c.resource(p, u.GetNamespace()).Patch(ctx, u.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: agent})
	return err
}

// untell takes back what we have told in statuses of Gateways.
func (c *cluster) untell(ctx context.Context, namespace string) error {
	of := c.client.Metadata.Resource(gatewaysResource)
	var errs []error
	for next := ""; ; {
		list, err := of.Namespace(namespace).List(ctx, metav1.ListOptions{Limit: page, Continue: next})
		if apierrors.IsNotFound(err) { // there is no such kind
			return nil
		}
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		for i := range list.Items {
			if o := &list.Items[i]; slices.ContainsFunc(o.ManagedFields, toldByUs) {
				errs = append(errs, c.tellStatus(ctx, o, ""))
			}
		}
		if next = list.GetContinue(); next == "" {
			return errors.Join(errs...)
		}
	}
}
