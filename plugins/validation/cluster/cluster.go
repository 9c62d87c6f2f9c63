// Package cluster reads from an API server what there is to analyze: Istio's resources with their
// statuses, those of the Gateway API, and the objects of Kubernetes that they are about.
package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation/analysis"
)

// Source is where findings say that objects come from.
const Source = "cluster"

// page is how many objects are read at once.
const page = 500

// wanted is a kind that is read.
type wanted struct {
	group    string
	versions []string
	resource string
	// namespace is the only one that is read; empty: all. fields is a selector of the API server's.
	namespace, fields string
}

// all are the kinds that are read. Of ConfigMaps those of the control plane's namespace are, of
// Secrets none that are tokens or releases of Helm.
func all(root string) []wanted {
	v1 := []string{"v1"}
	list := []wanted{
		{"", v1, "namespaces", "", ""}, {"", v1, "nodes", "", ""}, {"", v1, "services", "", ""}, {"", v1, "pods", "", ""},
		{"apps", v1, "deployments", "", ""}, {"", v1, "configmaps", root, ""},
		{"", v1, "secrets", "", "type!=helm.sh/release.v1,type!=kubernetes.io/service-account-token"},
		{"admissionregistration.k8s.io", v1, "mutatingwebhookconfigurations", "", ""},
		{"admissionregistration.k8s.io", v1, "validatingwebhookconfigurations", "", ""},
		{"apiextensions.k8s.io", v1, "customresourcedefinitions", "", ""},
		{"networking.k8s.io", v1, "ingressclasses", "", ""}, {"networking.k8s.io", v1, "ingresses", "", ""},
	}
	for _, table := range kinds.Tables() {
		k, _ := kinds.Lookup(table)
		list = append(list, wanted{k.Group(), k.Versions, kinds.Plural(k.Name()), "", ""})
	}
	for _, k := range gatewayapi.All() {
		list = append(list, wanted{k.Group(), k.Versions, kinds.Plural(k.Name()), "", ""})
	}
	grants := kinds.Grants()
	return append(list, wanted{grants.Group(), grants.Versions, kinds.Plural(grants.Name()), "", ""})
}

// ofStatuses reports whether statuses of objects of the Gateway API depend on a kind.
func (k wanted) ofStatuses() bool {
	return k.group == gatewayapi.Group || slices.Contains([]string{"namespaces", "services", "serviceentries"}, k.resource)
}

// Read adds what an API server has to a reader. root is the control plane's namespace. It returns
// what it may not read, by name: nothing is said of what depends on that. Kinds without a
// definition have no objects.
func Read(ctx context.Context, client dynamic.Interface, root string, into *analysis.Reader) (forbidden []string, err error) {
	for _, k := range all(root) {
		err := fmt.Errorf("no version")
		for _, version := range k.versions {
			if err = k.read(ctx, client, version, into.Add); !apierrors.IsNotFound(err) {
				break
			}
		}
		switch {
		case err == nil || apierrors.IsNotFound(err):
		case apierrors.IsForbidden(err):
			forbidden = append(forbidden, k.resource)
			into.Input.NoStatuses = into.Input.NoStatuses || k.ofStatuses()
		default:
			return forbidden, fmt.Errorf("%s: %w", k.resource, err)
		}
	}
	return forbidden, nil
}

// ReadRemote adds what another cluster of the mesh has to a reader: its Services, which are
// compared with those of the same name.
func ReadRemote(ctx context.Context, client dynamic.Interface, cluster string, into *analysis.Reader) error {
	services := wanted{"", nil, "services", "", ""}
	err := services.read(ctx, client, "v1", func(file string, text []byte) { into.AddRemote(cluster, cluster+"/"+file, text) })
	if err != nil {
		return fmt.Errorf("%s: services: %w", cluster, err)
	}
	return nil
}

// read reads one kind, page by page.
func (k wanted) read(ctx context.Context, client dynamic.Interface, version string, into func(file string, text []byte)) error {
	var from dynamic.ResourceInterface = client.Resource(schema.GroupVersionResource{Group: k.group, Version: version, Resource: k.resource})
	if k.namespace != "" {
		from = client.Resource(schema.GroupVersionResource{Group: k.group, Version: version, Resource: k.resource}).Namespace(k.namespace)
	}
	for next := ""; ; {
		list, err := from.List(ctx, metav1.ListOptions{Limit: page, Continue: next, FieldSelector: k.fields})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if err := add(&list.Items[i], into); err != nil {
				return err
			}
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

// add adds an object, without what only an API server needs.
func add(o *unstructured.Unstructured, into func(file string, text []byte)) error {
	o.SetManagedFields(nil)
	if o.GetKind() == "CustomResourceDefinition" {
		unstructured.RemoveNestedField(o.Object, "spec", "versions") // the schemas, which are large
	}
	text, err := json.Marshal(o.Object)
	if err != nil {
		return err
	}
	into(Source+"/"+strings.ToLower(o.GetKind()), text)
	return nil
}
