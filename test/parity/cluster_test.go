package parity

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/coxswain-mesh/coxswain/test/kube"
)

// cluster is an API server with Istio's definitions and the namespace istio-system.
type cluster struct {
	*kube.Cluster
	about   discovery.DiscoveryInterface
	objects dynamic.Interface
	// own are the objects that it had at first.
	own map[types.UID]bool
	// others are the clusters beside it that states have had so far.
	others []*cluster
	// definitions are those of the Gateway API that it has, from one state to the next.
	definitions string
	// settings are those of injection; empty until a state asks for them.
	settings string
	// mirror is a cluster of its own with the same objects and without an istiod, where the control
	// plane writes; nil until a state asks for it.
	mirror *cluster
	// of is the test at whose end it stops.
	of *testing.T
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{Cluster: kube.Start(t, "--service-cluster-ip-range", "10.96.0.0/16,fd00:96::/112"), own: map[types.UID]bool{}, of: t}
	c.Apply(t, kube.Definitions(t))
	c.Apply(t, kube.MultiCluster)
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	c.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: istio-system}\n")
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{} // no limit
	if c.about, err = discovery.NewDiscoveryClientForConfig(config); err != nil {
		t.Fatal(err)
	}
	if c.objects, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	c.each(t, func(_ schema.GroupVersionResource, o *unstructured.Unstructured) { c.own[o.GetUID()] = true })
	return c
}

// injection is the ConfigMap of injection, made once.
func (c *cluster) injection(t *testing.T) string {
	t.Helper()
	if c.settings == "" {
		c.settings = kube.InjectorSettings(t)
	}
	return c.settings
}

// each visits all objects that can be deleted, those in namespaces first.
func (c *cluster) each(t *testing.T, visit func(schema.GroupVersionResource, *unstructured.Unstructured)) {
	t.Helper()
	lists, err := c.about.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, inNamespaces := range []bool{true, false} {
		for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
			group, err := schema.ParseGroupVersion(list.GroupVersion)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range list.APIResources {
				if r.Namespaced != inNamespaces {
					continue
				}
				at := group.WithResource(r.Name)
				found, err := c.objects.Resource(at).List(context.Background(), metav1.ListOptions{})
				if apierrors.IsNotFound(err) {
					continue // its definition has just been deleted
				}
				if err != nil {
					t.Fatalf("%s: %v", at, err)
				}
				for i := range found.Items {
					visit(at, &found.Items[i])
				}
			}
		}
	}
}

// define gives it definitions of the Gateway API in place of those that it had. Many states ask for
// the same, which cost an API server more than all else in them.
func (c *cluster) define(t *testing.T, text string) {
	t.Helper()
	if c.definitions == text {
		return
	}
	if c.definitions != "" {
		c.definitions = ""
		c.wipe(t)
	}
	if text != "" {
		c.Apply(t, text)
		c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
		c.definitions = text
	}
}

// kept reports whether an object is one of the definitions that it keeps.
func (c *cluster) kept(at schema.GroupVersionResource, o *unstructured.Unstructured) bool {
	return c.definitions != "" && at.Resource == "customresourcedefinitions" && strings.Contains(o.GetName(), ".gateway.networking.")
}

// wipe deletes all that was made since the start, but for definitions of the Gateway API.
func (c *cluster) wipe(t *testing.T) {
	t.Helper()
	c.each(t, func(at schema.GroupVersionResource, o *unstructured.Unstructured) {
		if c.kept(at, o) {
			return
		}
		if !c.own[o.GetUID()] {
			c.remove(t, at, o)
			return
		}
		if at == namespaces && len(o.GetLabels())+len(o.GetAnnotations()) > 1 {
			patch := []byte(`{"metadata":{"labels":null,"annotations":null}}`)
			if _, err := c.objects.Resource(at).Patch(context.Background(), o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	})
	c.bury(t)
}

func (c *cluster) remove(t *testing.T, at schema.GroupVersionResource, o *unstructured.Unstructured) {
	t.Helper()
	client, ctx, now := c.objects.Resource(at).Namespace(o.GetNamespace()), context.Background(), int64(0)
	if len(o.GetFinalizers()) > 0 {
		_, err := client.Patch(ctx, o.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatalf("%s %s: %v", at, o.GetName(), err)
		}
	}
	if err := client.Delete(ctx, o.GetName(), metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		t.Fatalf("%s %s: %v", at, o.GetName(), err)
	}
}

// bury ends namespaces that are being deleted, and what is in them, as the controller of namespaces
// does.
func (c *cluster) bury(t *testing.T) {
	t.Helper()
	ctx, ending := context.Background(), map[string]*unstructured.Unstructured{}
	list, err := c.objects.Resource(namespaces).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if o := &list.Items[i]; o.GetDeletionTimestamp() != nil {
			ending[o.GetName()] = o
		}
	}
	if len(ending) == 0 {
		return
	}
	c.each(t, func(at schema.GroupVersionResource, o *unstructured.Unstructured) {
		if ending[o.GetNamespace()] != nil {
			c.remove(t, at, o)
		}
	})
	for name, o := range ending {
		unstructured.RemoveNestedField(o.Object, "spec", "finalizers")
		if _, err := c.objects.Resource(namespaces).Update(ctx, o, metav1.UpdateOptions{}, "finalize"); err != nil && !apierrors.IsNotFound(err) {
			t.Fatalf("namespace %s: %v", name, err)
		}
	}
}
