package kubernetes

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestLean: what is kept of an object makes rows, is kept as it is when it comes again, and shares
// what others have, too.
func TestLean(t *testing.T) {
	text := `
metadata: {name: NAME, namespace: shop, labels: {a: b}, annotations: {large: text}, managedFields: [{manager: x}]}
spec: {nodeName: one, serviceAccountName: s, containers: [{name: a, image: i, env: [{name: x, value: y}], ports: [{name: http, containerPort: 80}]}]}
status: {podIP: 10.0.0.1, phase: Running, conditions: [{type: Ready, status: "True", message: m}, {type: Initialized, status: "True"}]}`
	k := &keeper{}
	kept := func(o any) any {
		t.Helper()
		once, err := k.lean(o)
		twice, again := k.lean(once)
		if err != nil || again != nil || once != twice {
			t.Fatal(err, again)
		}
		return once
	}
	want := &pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "shop", Labels: map[string]string{"a": "b"}},
		node:       "one", account: "s", workload: "p", addresses: []string{"10.0.0.1"}, ports: map[string]uint32{"http": 80}, ready: true,
	}
	one, other := kept(object[corev1.Pod](t, strings.Replace(text, "NAME", "p", 1))).(*pod),
		kept(object[corev1.Pod](t, strings.Replace(text, "NAME", "q", 1))).(*pod)
	if diff := cmp.Diff(want, one, cmp.AllowUnexported(pod{})); diff != "" {
		t.Error(diff)
	}
	one.Labels["mark"], one.ports["mark"] = "", 1 // nobody does that
	if len(other.Labels) != 2 || len(other.ports) != 2 {
		t.Errorf("they share neither labels nor ports: %+v", other)
	}

	s := kept(object[discoveryv1.EndpointSlice](t, `
metadata: {name: s, namespace: shop, uid: u, labels: {kubernetes.io/service-name: web}, annotations: {endpoints.kubernetes.io/last-change-trigger-time: x}}
addressType: IPv4
ports: [{name: http, port: 80}]
endpoints:
- {addresses: [10.0.0.1], conditions: {ready: true, serving: false}, nodeName: one, zone: z, hostname: h, targetRef: {kind: Pod, name: p, namespace: shop, uid: v}}
- {addresses: [10.0.0.2], conditions: {ready: false, terminating: true}, nodeName: one}`)).(*discoveryv1.EndpointSlice)
	lean := object[discoveryv1.EndpointSlice](t, `
metadata: {name: s, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 80}]
endpoints:
- {addresses: [10.0.0.1], conditions: {ready: true, serving: false}, nodeName: one, targetRef: {kind: Pod, name: p, namespace: shop}}
- {addresses: [10.0.0.2], conditions: {ready: false, terminating: true}, nodeName: one}`)
	if diff := cmp.Diff(lean, s); diff != "" {
		t.Error(diff)
	}
	if s.Endpoints[0].NodeName != s.Endpoints[1].NodeName {
		t.Error("they share no name of their node")
	}
}
