package parity

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Both would write into the same objects. So each has a cluster with the same ones: istiod that
// which both answer proxies from, and the control plane a second one, its mirror, in which another
// of it runs. Objects of a file are made one after the other, in the same second or not: of those
// that want the same thing the older one must be the first by name, too.

// share counts what is equal of all that is compared.
type share struct{ equal, all int }

func (s *share) add(o share) { s.equal, s.all = s.equal+o.equal, s.all+o.all }

func (s share) share() float64 {
	if s.all == 0 {
		return 100
	}
	return 100 * float64(s.equal) / float64(s.all)
}

// report is what is equal of statuses and of what is deployed for Gateways.
type report struct {
	statuses, deployed share
	differences        []string
}

func (r *report) add(o report) {
	r.statuses.add(o.statuses)
	r.deployed.add(o.deployed)
}

func (r report) String() string {
	return fmt.Sprintf("statuses %5.1f %% of %d, deployed objects %5.1f %% of %d", r.statuses.share(), r.statuses.all, r.deployed.share(), r.deployed.all)
}

// reporting are the kinds whose statuses are compared, deployed those that are made for Gateways.
var reporting, deployed = resources(`
	gateway.networking.k8s.io/v1 gatewayclasses gateways listenersets httproutes grpcroutes tcproutes tlsroutes udproutes backendtlspolicies
	gateway.networking.x-k8s.io/v1alpha1 xbackendtrafficpolicies
	networking.k8s.io/v1 ingresses`), resources(`
	v1 services serviceaccounts
	apps/v1 deployments
	autoscaling/v2 horizontalpodautoscalers
	policy/v1 poddisruptionbudgets`)

func resources(text string) (out []schema.GroupVersionResource) {
	for line := range strings.Lines(strings.TrimSpace(text)) {
		words := strings.Fields(line)
		group, err := schema.ParseGroupVersion(words[0])
		if err != nil {
			panic(err)
		}
		for _, name := range words[1:] {
			out = append(out, group.WithResource(name))
		}
	}
	return out
}

// second is the cluster's mirror.
func (c *cluster) second(t *testing.T) *cluster {
	t.Helper()
	if c.mirror == nil {
		c.mirror = newCluster(c.of)
	}
	return c.mirror
}

// What is written must stay as it is for so long to count: for less where it is the same.
const (
	calm   = 1500 * time.Millisecond
	calmer = 6 * time.Second
	ever   = time.Minute
)

// compareWritten waits until what both have written stays as it is, and compares it.
func (c *cluster) compareWritten(t *testing.T) (r report) {
	t.Helper()
	var last string
	began := time.Now()
	for since := began; ; time.Sleep(100 * time.Millisecond) {
		theirs, ours := c.written(t), c.mirror.written(t)
		now := theirs.String() + ours.String()
		if now != last {
			last, since = now, time.Now()
		}
		still := time.Since(since)
		if r = compareBoth(theirs, ours); still > calmer || still > calm && len(r.differences) == 0 || time.Since(began) > ever {
			return r
		}
	}
}

// written is what a control plane has written: statuses and deployed objects, by what names them.
type written struct{ statuses, deployed map[string]any }

func (w written) String() string {
	text, err := json.Marshal([]any{w.statuses, w.deployed})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (c *cluster) written(t *testing.T) written {
	t.Helper()
	w := written{map[string]any{}, map[string]any{}}
	list := func(of []schema.GroupVersionResource, labels string, visit func(string, *unstructured.Unstructured)) {
		for _, at := range of {
			found, err := c.objects.Resource(at).List(context.Background(), metav1.ListOptions{LabelSelector: labels})
			if apierrors.IsNotFound(err) {
				continue // there is no definition
			}
			if err != nil {
				t.Fatalf("%s: %v", at, err)
			}
			for i := range found.Items {
				o := &found.Items[i]
				visit(fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName()), o)
			}
		}
	}
	list(reporting, "", func(name string, o *unstructured.Unstructured) { w.statuses[name] = plain(o.Object["status"]) })
	list(deployed, "gateway.istio.io/managed", func(name string, o *unstructured.Unstructured) { w.deployed[name] = own(o) })
	return w
}

// plain is a status without times, with conditions and parents in the order of their names.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, e := range v {
			if key != "lastTransitionTime" {
				out[key] = plain(e)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plain(e)
		}
		slices.SortStableFunc(out, func(a, b any) int { return strings.Compare(titleOf(a), titleOf(b)) })
		return out
	}
	return v
}

// titleOf is what names a condition, or an entry of a parent or an ancestor.
func titleOf(v any) string {
	m, _ := v.(map[string]any)
	for _, key := range []string{"type", "parentRef", "ancestorRef"} {
		if is := m[key]; is != nil {
			text, err := json.Marshal([]any{is, m["controllerName"]})
			if err != nil {
				panic(err)
			}
			return string(text)
		}
	}
	return ""
}

// own is an object without what the API server makes of it.
func own(o *unstructured.Unstructured) any {
	o = o.DeepCopy()
	for _, name := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
		unstructured.RemoveNestedField(o.Object, "metadata", name)
	}
	for _, ref := range o.GetOwnerReferences() {
		ref.UID = ""
		o.SetOwnerReferences([]metav1.OwnerReference{ref})
	}
	delete(o.Object, "status")
	if o.GetKind() == "Service" {
		for _, name := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
			unstructured.RemoveNestedField(o.Object, "spec", name)
		}
		ports, _, _ := unstructured.NestedSlice(o.Object, "spec", "ports")
		for _, p := range ports {
			delete(p.(map[string]any), "nodePort")
		}
		_ = unstructured.SetNestedSlice(o.Object, ports, "spec", "ports")
	}
	return o.Object
}

// compareBoth compares what both have written.
func compareBoth(theirs, ours written) (r report) {
	compare := func(theirs, ours map[string]any) (s share) {
		both := maps.Clone(theirs)
		maps.Copy(both, ours)
		for _, name := range slices.Sorted(maps.Keys(both)) {
			s.all++
			if diff := cmp.Diff(theirs[name], ours[name]); diff != "" {
				r.differences = append(r.differences, name+" (-istiod +ours):\n"+diff)
				continue
			}
			s.equal++
		}
		return s
	}
	r.statuses, r.deployed = compare(theirs.statuses, ours.statuses), compare(theirs.deployed, ours.deployed)
	return r
}
