package parity

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/coxswain-mesh/coxswain/test/kit/wait"
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

// reporting are the kinds whose statuses are compared, but for UDPRoutes, of which istiod says
// nothing; deployed are those that are made for Gateways.
var reporting, deployed = resources(`
	gateway.networking.k8s.io/v1 gatewayclasses gateways listenersets httproutes grpcroutes tcproutes tlsroutes backendtlspolicies
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

// classes are those that both make. They are there from the start, for one of both may see a minute
// later than the other that there is a definition of them.
const classes = `
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: istio}
spec: {controllerName: istio.io/gateway-controller, description: The default Istio GatewayClass}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: istio-remote}
spec: {controllerName: istio.io/unmanaged-gateway, description: Remote to this cluster. Does not deploy or affect configuration.}
`

// What is written must stay as it is for so long to count: for less where it is the same.
const (
	calm   = time.Second
	calmer = 5 * time.Second
	ever   = time.Minute
)

// compareWritten compares what both have written once both have seen all that was applied, and it
// stays as it is. Each time that it is called has another number.
func (c *cluster) compareWritten(t *testing.T, number int) (r report) {
	t.Helper()
	c.mark(t, number)
	c.mirror.mark(t, number)
	c.marked(t)
	c.mirror.marked(t)
	c.collect(t)
	c.mirror.collect(t)
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

// The marker is a Gateway that nothing is deployed for and no proxy serves. It is changed after all
// else: who has written its status has seen what was changed before.
var markers = schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "gateways"}

const marker = "marker"

// mark makes the marker, or changes it.
func (c *cluster) mark(t *testing.T, number int) {
	t.Helper()
	_, err := c.objects.Resource(markers).Namespace("istio-system").Apply(context.Background(), marker, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": map[string]any{"name": marker, "namespace": "istio-system"},
		"spec": map[string]any{
			"gatewayClassName": "istio",
			"addresses":        []any{map[string]any{"type": "Hostname", "value": "nobody.istio-system.svc.cluster.local"}},
			"listeners":        []any{map[string]any{"name": "marker", "port": int64(40000 + number), "protocol": "TCP"}},
		}}}, metav1.ApplyOptions{FieldManager: "parity", Force: true})
	if err != nil {
		t.Fatal(err)
	}
}

// marked waits until the statuses of the marker and of its class are those of what they are now.
func (c *cluster) marked(t *testing.T) {
	t.Helper()
	class := c.objects.Resource(markers.GroupVersion().WithResource("gatewayclasses"))
	c.says(t, class, "istio", "Accepted")
	c.says(t, c.objects.Resource(markers).Namespace("istio-system"), marker, "Programmed")
}

// says waits until an object has a condition that is no older than what the object is now.
func (c *cluster) says(t *testing.T, objects dynamic.ResourceInterface, name, condition string) {
	t.Helper()
	wait.For(t, "a condition of "+name+" is written", func() error {
		is, err := objects.Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(is.Object, "status", "conditions")
		for _, c := range conditions {
			if m, _ := c.(map[string]any); m["type"] == condition && m["observedGeneration"] == is.GetGeneration() {
				return nil
			}
		}
		return fmt.Errorf("generation %d has %v", is.GetGeneration(), conditions)
	})
}

// nothing are statuses that don't count, as none doesn't: what the API server gives an Ingress, and
// what istiod writes into a route that names no parent of its own (docs/differences.md).
var nothing = []any{map[string]any{"loadBalancer": map[string]any{}}, map[string]any{"parents": []any{}}}

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
				if o.GetName() == marker {
					continue
				}
				visit(fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName()), o)
			}
		}
	}
	list(reporting, "", func(name string, o *unstructured.Unstructured) {
		status, _ := plain(o.Object["status"]).(map[string]any)
		if len(status) > 0 && !slices.ContainsFunc(nothing, func(n any) bool { return len(unequal(status, n)) == 0 }) {
			w.statuses[name] = status
		}
	})
	list(deployed, "gateway.istio.io/managed", func(name string, o *unstructured.Unstructured) { w.deployed[name] = own(o) })
	return w
}

// deployedCondition is what a Gateway says in which nothing can be deployed as it asks. istiod says
// nothing (docs/differences.md).
const deployedCondition = "coxswain-mesh.github.io/Deployed"

// badReference is what is said of a certificate, or of roots, that can't be used, and why.
var badReference = regexp.MustCompile(`^(invalid (?:CA )?certificate reference \S+), (.*)$`)

// asCompared is a message as it is compared: why a certificate can't be used both say in words of
// their own, and of several listeners in any order (docs/differences.md).
func asCompared(message string) string {
	if m := badReference.FindStringSubmatch(message); m != nil && !strings.HasSuffix(m[2], " not found") &&
		!strings.HasPrefix(m[2], "only ") {
		return m[1]
	}
	return strings.Join(slices.Sorted(strings.SplitSeq(message, "; ")), "; ")
}

// plain is a status without times, supportedFeatures (docs/differences.md) and that condition, with
// conditions and parents in the order of their names, what several listeners say of a route in the
// order of the alphabet, for istiod has none, and nothing of references of a listener that loses
// against another: istiod keeps what it said before it knew (docs/differences.md).
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, e := range v {
			if key != "lastTransitionTime" && key != "supportedFeatures" {
				out[key] = plain(e)
			}
		}
		if message, is := out["message"].(string); is {
			out["message"] = asCompared(message)
		}
		if list, is := out["conditions"].([]any); is && slices.ContainsFunc(list, isTrue("Conflicted")) {
			out["conditions"] = slices.DeleteFunc(list, isTrue("ResolvedRefs"))
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, e := range v {
			if m, _ := e.(map[string]any); m["type"] != deployedCondition {
				out = append(out, plain(e))
			}
		}
		slices.SortStableFunc(out, func(a, b any) int { return strings.Compare(titleOf(a), titleOf(b)) })
		return out
	}
	return v
}

// isTrue reports whether a value is a condition of a type, and met.
func isTrue(condition string) func(any) bool {
	return func(v any) bool {
		m, _ := v.(map[string]any)
		return m["type"] == condition && m["status"] == "True"
	}
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
	if o.GetKind() == "Deployment" {
		trim(o.Object)
	}
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

// trim takes the newline from the end of environment variables: a template of istiod's that has one
// on a line of its own ends it so.
func trim(v any) {
	switch v := v.(type) {
	case map[string]any:
		if text, is := v["value"].(string); is {
			v["value"] = strings.TrimSuffix(text, "\n")
		}
		for _, e := range v {
			trim(e)
		}
	case []any:
		for _, e := range v {
			trim(e)
		}
	}
}

// compareBoth compares what both have written.
func compareBoth(theirs, ours written) (r report) {
	compare := func(theirs, ours map[string]any) (s share) {
		both := maps.Clone(theirs)
		maps.Copy(both, ours)
		for _, name := range slices.Sorted(maps.Keys(both)) {
			s.all++
			their, there := theirs[name]
			our, here := ours[name]
			switch more := unequal(their, our); {
			case !here:
				r.differences = append(r.differences, name+": istiod's alone: "+textOf(their))
			case !there:
				r.differences = append(r.differences, name+": ours alone: "+textOf(our))
			case len(more) > 0:
				r.differences = append(r.differences, name+":\n    "+strings.Join(more, "\n    "))
			default:
				s.equal++
			}
		}
		return s
	}
	r.statuses, r.deployed = compare(theirs.statuses, ours.statuses), compare(theirs.deployed, ours.deployed)
	return r
}

// textOf is a value as JSON.
func textOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// unequal are the fields in which two values differ, as a line each.
func unequal(theirs, ours any) (out []string) {
	a, b := map[string]string{}, map[string]string{}
	leaves(a, "", theirs)
	leaves(b, "", ours)
	both := maps.Clone(a)
	maps.Copy(both, b)
	for _, path := range slices.Sorted(maps.Keys(both)) {
		if a[path] != b[path] {
			out = append(out, fmt.Sprintf("%s: istiod %s, ours %s", path, cmp.Or(a[path], "none"), cmp.Or(b[path], "none")))
		}
	}
	return out
}

// leaves adds the fields of a value that have no others in them, by their paths, as JSON.
func leaves(to map[string]string, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			leaves(to, path+"."+key, e)
		}
		if len(v) > 0 {
			return
		}
	case []any:
		for i, e := range v {
			leaves(to, path+"["+cmp.Or(titleOf(e), strconv.Itoa(i))+"]", e)
		}
		if len(v) > 0 {
			return
		}
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	to[path] = string(text)
}
