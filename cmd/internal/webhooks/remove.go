package webhooks

import (
	"context"
	"errors"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Found are the configurations of webhooks of a cluster, by name, in order.
type Found struct {
	// Mutating and Validating are ours: all of their webhooks are named so.
	Mutating, Validating []string
	// Others are those of others that have the label of a revision, which stay.
	Others []string
	// tags are those of which ours are.
	tags []string
}

// Find looks for configurations; revision: of that one alone, empty: of all.
func Find(ctx context.Context, client kubernetes.Interface, revision string) (*Found, error) {
	f := &Found{}
	note := func(into *[]string, m metav1.ObjectMeta, kind string, names []string, end string) {
		of, labelled := m.Labels[RevisionLabel]
		if revision != "" && of != revision {
			return
		}
		if len(names) > 0 && !slices.ContainsFunc(names, func(n string) bool { return n != end && !strings.HasSuffix(n, "."+end) }) {
			*into = append(*into, m.Name)
			if tag := m.Labels[TagLabel]; tag != "" && !slices.Contains(f.tags, tag) {
				f.tags = append(f.tags, tag)
			}
			return
		}
		if labelled {
			f.Others = append(f.Others, kind+"/"+m.Name)
		}
	}
	hooks := client.AdmissionregistrationV1()
	mutating, err := hooks.MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{Limit: mostListed})
	if err != nil {
		return nil, err
	}
	for _, c := range mutating.Items {
		note(&f.Mutating, c.ObjectMeta, "MutatingWebhookConfiguration", named(c.Webhooks, func(h admission.MutatingWebhook) string { return h.Name }), injectorSuffix)
	}
	validating, err := hooks.ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{Limit: mostListed})
	if err != nil {
		return nil, err
	}
	for _, c := range validating.Items {
		note(&f.Validating, c.ObjectMeta, "ValidatingWebhookConfiguration", named(c.Webhooks, func(h admission.ValidatingWebhook) string { return h.Name }), validatorSuffix)
	}
	return f, nil
}

func named[T any](all []T, name func(T) string) (names []string) {
	for _, h := range all {
		names = append(names, name(h))
	}
	return names
}

// Remove takes them away, those about pods first: what is created meanwhile gets no proxy, and is
// created. What was said of it is returned, a line for each; where one can't be taken away, the
// others are.
func (f *Found) Remove(ctx context.Context, client kubernetes.Interface) (lines []string, err error) {
	r := &remover{client: client}
	for _, name := range f.Mutating {
		r.mutating(ctx, name)
	}
	for _, name := range f.Validating {
		r.validating(ctx, name)
	}
	for _, tag := range f.tags {
		r.role(ctx, tagRole(tag))
	}
	return r.lines, errors.Join(r.errs...)
}

// remover deletes objects, and notes what came of it.
type remover struct {
	client kubernetes.Interface
	lines  []string
	errs   []error
}

func (r *remover) did(kind, name string, err error) {
	switch {
	case err == nil:
		r.lines = append(r.lines, kind+"/"+name+" removed")
	case !apierrors.IsNotFound(err):
		r.errs = append(r.errs, err)
	}
}

func (r *remover) mutating(ctx context.Context, name string) {
	r.did("MutatingWebhookConfiguration", name, r.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Delete(ctx, name, metav1.DeleteOptions{}))
}

func (r *remover) validating(ctx context.Context, name string) {
	r.did("ValidatingWebhookConfiguration", name, r.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, name, metav1.DeleteOptions{}))
}

func (r *remover) service(ctx context.Context, namespace, name string) {
	r.did("Service", namespace+"/"+name, r.client.CoreV1().Services(namespace).Delete(ctx, name, metav1.DeleteOptions{}))
}

// role takes away what let a control plane keep a tag's configurations.
func (r *remover) role(ctx context.Context, name string) {
	r.did("ClusterRoleBinding", name, r.client.RbacV1().ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{}))
	r.did("ClusterRole", name, r.client.RbacV1().ClusterRoles().Delete(ctx, name, metav1.DeleteOptions{}))
}
