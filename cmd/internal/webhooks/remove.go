package webhooks

import (
	"context"
	"errors"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
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
func Find(ctx context.Context, objects dynamic.Interface, revision string) (*Found, error) {
	f := &Found{}
	note := func(into *[]string, m metav1.ObjectMeta, kind string, names []string, end string) {
		of, labelled := m.Labels[RevisionLabel]
		if revision != "" && of != revision {
			return
		}
		if len(names) > 0 && (isTag(m) || !slices.ContainsFunc(names, func(n string) bool { return n != end && !strings.HasSuffix(n, "."+end) })) {
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
	mutating, err := Mutating.List(ctx, objects, "", "")
	if err != nil {
		return nil, err
	}
	for _, c := range mutating {
		note(&f.Mutating, c.ObjectMeta, Mutating.Name, named(c.Webhooks, func(h admission.MutatingWebhook) string { return h.Name }), injectorSuffix)
	}
	validating, err := Validating.List(ctx, objects, "", "")
	if err != nil {
		return nil, err
	}
	for _, c := range validating {
		note(&f.Validating, c.ObjectMeta, Validating.Name, named(c.Webhooks, func(h admission.ValidatingWebhook) string { return h.Name }), validatorSuffix)
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
func (f *Found) Remove(ctx context.Context, objects dynamic.Interface) (lines []string, err error) {
	r := &remover{objects: objects}
	for _, name := range f.Mutating {
		Mutating.remove(ctx, r, "", name)
	}
	for _, name := range f.Validating {
		Validating.remove(ctx, r, "", name)
	}
	for _, tag := range f.tags {
		r.role(ctx, tagRole(tag))
	}
	return r.lines, errors.Join(r.errs...)
}

// role takes away what let a control plane keep a tag's configurations.
func (r *remover) role(ctx context.Context, name string) {
	bindings.remove(ctx, r, "", name)
	roles.remove(ctx, r, "", name)
}
