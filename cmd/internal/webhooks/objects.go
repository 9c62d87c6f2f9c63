package webhooks

import (
	"context"

	admission "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// mostListed is how many objects of a kind are read at most; fieldManager is who writes, to the API
// server.
const (
	mostListed   = 10_000
	fieldManager = "coxswain"
)

// Kind reads and writes objects of one kind. Clients of all kinds would make the program a quarter
// larger.
type Kind[T any] struct {
	// Name is the kind's.
	Name     string
	resource schema.GroupVersionResource
}

// Kinds that this package, and who reads a cluster, knows.
var (
	Mutating = Kind[admission.MutatingWebhookConfiguration]{
		"MutatingWebhookConfiguration", admission.SchemeGroupVersion.WithResource("mutatingwebhookconfigurations"),
	}
	Validating = Kind[admission.ValidatingWebhookConfiguration]{
		"ValidatingWebhookConfiguration",
		admission.SchemeGroupVersion.WithResource("validatingwebhookconfigurations"),
	}
	Services     = Kind[corev1.Service]{"Service", corev1.SchemeGroupVersion.WithResource("services")}
	ConfigMaps   = Kind[corev1.ConfigMap]{"ConfigMap", corev1.SchemeGroupVersion.WithResource("configmaps")}
	Namespaces   = Kind[corev1.Namespace]{"Namespace", corev1.SchemeGroupVersion.WithResource("namespaces")}
	Deployments  = Kind[appsv1.Deployment]{"Deployment", appsv1.SchemeGroupVersion.WithResource("deployments")}
	DaemonSets   = Kind[appsv1.DaemonSet]{"DaemonSet", appsv1.SchemeGroupVersion.WithResource("daemonsets")}
	StatefulSets = Kind[appsv1.StatefulSet]{"StatefulSet", appsv1.SchemeGroupVersion.WithResource("statefulsets")}
	roles        = Kind[rbacv1.ClusterRole]{"ClusterRole", rbacv1.SchemeGroupVersion.WithResource("clusterroles")}
	bindings     = Kind[rbacv1.ClusterRoleBinding]{"ClusterRoleBinding", rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings")}
)

func (k Kind[T]) in(objects dynamic.Interface, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return objects.Resource(k.resource)
	}
	return objects.Resource(k.resource).Namespace(namespace)
}

// List returns objects that a selector of labels selects (empty: all), of a namespace (empty: of
// all, or of none).
func (k Kind[T]) List(ctx context.Context, objects dynamic.Interface, namespace, selector string) ([]*T, error) {
	found, err := k.in(objects, namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: mostListed})
	if err != nil {
		return nil, err
	}
	out := make([]*T, len(found.Items))
	for i := range found.Items {
		out[i] = new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Items[i].Object, out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func written[T any](o *T) (*unstructured.Unstructured, error) {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	return &unstructured.Unstructured{Object: m}, err
}

// update writes an object over what it was read as.
func (k Kind[T]) update(ctx context.Context, objects dynamic.Interface, o *T) error {
	u, err := written(o)
	if err != nil {
		return err
	}
	u.SetKind(k.Name)
	u.SetAPIVersion(k.resource.GroupVersion().String())
	_, err = k.in(objects, u.GetNamespace()).Update(ctx, u, metav1.UpdateOptions{FieldManager: fieldManager})
	return err
}

// put creates an object, or gives the one that is there its labels, and the fields that are named.
// What was done is returned.
func (k Kind[T]) put(ctx context.Context, objects dynamic.Interface, o *T, fields ...string) (line string, err error) {
	u, err := written(o)
	if err != nil {
		return "", err
	}
	at := k.in(objects, u.GetNamespace())
	_, err = at.Create(ctx, u, metav1.CreateOptions{FieldManager: fieldManager})
	if !apierrors.IsAlreadyExists(err) {
		return k.Name + "/" + u.GetName() + " created", err
	}
	is, err := at.Get(ctx, u.GetName(), metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	is.SetLabels(u.GetLabels())
	for _, f := range fields {
		is.Object[f] = u.Object[f]
	}
	if ports, ok, _ := unstructured.NestedFieldNoCopy(u.Object, "spec"); ok && k.Name == Services.Name { // addresses stay
		spec, _ := ports.(map[string]any)
		was, _, _ := unstructured.NestedMap(is.Object, "spec")
		for key, value := range spec {
			was[key] = value
		}
		is.Object["spec"] = was
	}
	_, err = at.Update(ctx, is, metav1.UpdateOptions{FieldManager: fieldManager})
	return k.Name + "/" + u.GetName() + " changed", err
}

// remover deletes objects, and notes what came of it.
type remover struct {
	objects dynamic.Interface
	lines   []string
	errs    []error
}

// remove deletes an object; one that is not there is passed over.
func (k Kind[T]) remove(ctx context.Context, r *remover, namespace, name string) {
	switch err := k.in(r.objects, namespace).Delete(ctx, name, metav1.DeleteOptions{}); {
	case err == nil:
		r.lines = append(r.lines, k.Name+"/"+name+" removed")
	case !apierrors.IsNotFound(err):
		r.errs = append(r.errs, err)
	}
}
