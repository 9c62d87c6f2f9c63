package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/lead"
)

// manager is whom the API server names as the owner of the fields that are written.
const manager = "coxswain"

// store is the API server as an sdk.Store: what it is asked goes to the API server at once, past
// what informers keep.
type store struct {
	server *server
	tables []string
	// revision is the control plane's, which locks are marked with.
	revision string
}

// Writes implements sdk.Store.
func (s *store) Writes() []string { return s.tables }

// locks are where Leases are that istiod keeps as ConfigMaps.
func (s *store) locks() kube.Locks {
	return kube.Locks{Objects: s.server.objects, Key: kube.LockKey(s.revision, false)}
}

// at returns where a kind's objects are.
func (s *store) at(ctx context.Context, table string) (schema.GroupVersionResource, error) {
	if table == lead.Table && slices.Contains(s.tables, table) {
		return coordination.SchemeGroupVersion.WithResource("leases"), nil
	}
	i := slices.IndexFunc(read(), func(k kinds.Kind) bool { return k.Table == table })
	if i < 0 || !slices.Contains(s.tables, table) {
		return schema.GroupVersionResource{}, &sdk.StoreError{Code: sdk.StoreUnsupported, Reason: table + " is not written here"}
	}
	at, ok, err := s.server.find(ctx, read()[i])
	switch {
	case err != nil:
		return at, kube.Failure(err)
	case !ok:
		return at, &sdk.StoreError{Code: sdk.StoreUnsupported, Reason: "the API server has no definition of " + table}
	}
	return at, nil
}

// in returns the client of a table's objects in a namespace.
func (s *store) in(ctx context.Context, table, namespace string) (dynamic.ResourceInterface, error) {
	at, err := s.at(ctx, table)
	if err != nil {
		return nil, err
	}
	return s.server.objects.Resource(at).Namespace(namespace), nil
}

// whole reports whether objects of a table are in no namespace.
func whole(table string) bool {
	k, ok := gatewayapi.Lookup(table)
	return ok && k.Cluster
}

// one returns the client for an object that is named.
func (s *store) one(ctx context.Context, table, namespace, name string) (dynamic.ResourceInterface, error) {
	switch {
	case whole(table) && namespace != "":
		return nil, &sdk.StoreError{Code: sdk.StoreInvalid, Reason: "objects of this kind are in no namespace"}
	case namespace == "" && !whole(table) || name == "":
		return nil, &sdk.StoreError{Code: sdk.StoreInvalid, Reason: "an object is named by its namespace and its name; one of them is empty"}
	}
	return s.in(ctx, table, namespace)
}

// Get implements sdk.Objects.
func (s *store) Get(ctx context.Context, table, namespace, name string) ([]byte, error) {
	client, err := s.one(ctx, table, namespace, name)
	if err != nil {
		return nil, err
	}
	if kube.IsLock(table, name) {
		return s.locks().Get(ctx, table, namespace, name)
	}
	return text(client.Get(ctx, name, metav1.GetOptions{}))
}

// List implements sdk.Objects.
func (s *store) List(ctx context.Context, table, namespace string, p sdk.Page) ([][]byte, string, error) {
	client, err := s.in(ctx, table, namespace)
	if err != nil {
		return nil, "", err
	}
	list, err := client.List(ctx, metav1.ListOptions{Limit: int64(p.Limit), Continue: p.Page})
	if err != nil {
		return nil, "", kube.Failure(err)
	}
	objects := make([][]byte, len(list.Items))
	for i := range list.Items {
		if objects[i], err = text(&list.Items[i], nil); err != nil {
			return nil, "", err
		}
	}
	return objects, list.GetContinue(), nil
}

// Create implements sdk.Objects.
func (s *store) Create(ctx context.Context, table string, object []byte) ([]byte, error) {
	client, u, err := s.given(ctx, table, object)
	if err != nil {
		return nil, err
	}
	if kube.IsLock(table, u.GetName()) {
		return s.locks().Create(ctx, table, object)
	}
	return text(client.Create(ctx, u, metav1.CreateOptions{FieldManager: manager}))
}

// Update implements sdk.Objects.
func (s *store) Update(ctx context.Context, table string, object []byte) ([]byte, error) {
	client, u, err := s.versioned(ctx, table, object)
	if err != nil {
		return nil, err
	}
	if kube.IsLock(table, u.GetName()) {
		return s.locks().Update(ctx, table, object)
	}
	return text(client.Update(ctx, u, metav1.UpdateOptions{FieldManager: manager}))
}

// UpdateStatus implements sdk.Objects. Statuses are many: where the object says what it must as the
// API server knows it, its text goes there as it is, and so comes the answer.
func (s *store) UpdateStatus(ctx context.Context, table string, object []byte) ([]byte, error) {
	var o struct {
		APIVersion, Kind string
		Metadata         struct{ Namespace, Name, ResourceVersion string }
	}
	at, err := s.at(ctx, table)
	if err != nil {
		return nil, err
	}
	_, kind, _ := strings.Cut(table, "/")
	if m := &o.Metadata; json.Unmarshal(object, &o) == nil && o.APIVersion == at.GroupVersion().String() && o.Kind == kind &&
		m.Name != "" && m.ResourceVersion != "" && (m.Namespace == "") == whole(table) {
		answer := s.server.about.Put().AbsPath("/apis", at.Group, at.Version).NamespaceIfScoped(m.Namespace,
			m.Namespace != "").
			Resource(at.Resource).Name(m.Name).SubResource("status").Param("fieldManager", manager).
			SetHeader("Accept", runtime.ContentTypeJSON).SetHeader("Content-Type", runtime.ContentTypeJSON).Body(object).Do(ctx)
		if err := answer.Error(); err != nil {
			return nil, kube.Failure(err)
		}
		return answer.Raw()
	}
	client, u, err := s.versioned(ctx, table, object)
	if err != nil {
		return nil, err
	}
	return text(client.UpdateStatus(ctx, u, metav1.UpdateOptions{FieldManager: manager}))
}

// Patch implements sdk.Objects. The version that is expected goes with the patch, where the API
// server compares it.
func (s *store) Patch(ctx context.Context, table, namespace, name string, patch []byte, version string) ([]byte, error) {
	client, err := s.one(ctx, table, namespace, name)
	if err != nil {
		return nil, err
	}
	if kube.IsLock(table, name) {
		return s.locks().Patch(ctx, table, namespace, name, patch, version)
	}
	fields, err := fieldsOf(patch)
	if err != nil {
		return nil, err
	}
	if version != "" {
		if err := unstructured.SetNestedField(fields, version, "metadata", "resourceVersion"); err != nil {
			return nil, &sdk.StoreError{Code: sdk.StoreInvalid, Field: "metadata", Reason: "is no object"}
		}
		if patch, err = json.Marshal(fields); err != nil {
			return nil, err
		}
	}
	return text(client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager}))
}

// Delete implements sdk.Objects.
func (s *store) Delete(ctx context.Context, table, namespace, name, version string) error {
	client, err := s.one(ctx, table, namespace, name)
	if err != nil {
		return err
	}
	if kube.IsLock(table, name) {
		return s.locks().Delete(ctx, table, namespace, name, version)
	}
	options := metav1.DeleteOptions{}
	if version != "" {
		options.Preconditions = &metav1.Preconditions{ResourceVersion: &version}
	}
	return kube.Failure(client.Delete(ctx, name, options))
}

// versioned is given for an object that must say which version it was made from.
func (s *store) versioned(ctx context.Context, table string, given []byte) (dynamic.ResourceInterface, *unstructured.Unstructured, error) {
	client, u, err := s.given(ctx, table, given)
	if err == nil && u.GetResourceVersion() == "" {
		err = &sdk.StoreError{Code: sdk.StoreInvalid, Field: "metadata.resourceVersion", Reason: "is missing: it says which version was changed"}
	}
	return client, u, err
}

// given reads an object of a table, and returns the client for it. Versions of a kind differ in
// name alone: the object gets the one that is written.
func (s *store) given(ctx context.Context, table string, given []byte) (dynamic.ResourceInterface, *unstructured.Unstructured, error) {
	fields, err := fieldsOf(given)
	if err != nil {
		return nil, nil, err
	}
	u := &unstructured.Unstructured{Object: fields}
	invalid := func(field, reason string, args ...any) (dynamic.ResourceInterface, *unstructured.Unstructured, error) {
		return nil, nil, &sdk.StoreError{Code: sdk.StoreInvalid, Field: field, Reason: fmt.Sprintf(reason, args...)}
	}
	group, kind, _ := strings.Cut(table, "/")
	switch is, err := schema.ParseGroupVersion(u.GetAPIVersion()); {
	case err != nil || is.Group != group:
		return invalid("apiVersion", "%q is none of %s", u.GetAPIVersion(), group)
	case u.GetKind() != kind:
		return invalid("kind", "%q is not %s", u.GetKind(), kind)
	case u.GetNamespace() == "" && !whole(table):
		return invalid("metadata.namespace", "is missing")
	case u.GetNamespace() != "" && whole(table):
		return invalid("metadata.namespace", "objects of this kind are in none")
	case u.GetName() == "":
		return invalid("metadata.name", "is missing")
	}
	at, err := s.at(ctx, table)
	if err != nil {
		return nil, nil, err
	}
	u.SetAPIVersion(at.GroupVersion().String())
	return s.server.objects.Resource(at).Namespace(u.GetNamespace()), u, nil
}

// fieldsOf reads JSON that is an object. Whole numbers stay as they are, as the API server reads
// them.
func fieldsOf(text []byte) (map[string]any, error) {
	var fields map[string]any
	if err := kjson.Unmarshal(text, &fields); err != nil {
		return nil, &sdk.StoreError{Code: sdk.StoreInvalid, Reason: "is no JSON object: " + err.Error()}
	}
	if fields == nil {
		return nil, &sdk.StoreError{Code: sdk.StoreInvalid, Reason: "is no JSON object"}
	}
	return fields, nil
}

// text is an object as the API server has it.
func text(u *unstructured.Unstructured, err error) ([]byte, error) {
	if err != nil {
		return nil, kube.Failure(err)
	}
	return json.Marshal(u.Object)
}
