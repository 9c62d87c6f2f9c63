package webhooks

import (
	"testing"

	admission "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
)

// TestAccount: whose control plane is behind a Service is found by its Deployment; where there are
// several accounts, or there is none, nobody gets rights.
func TestAccount(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, admission.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "mesh", Name: name} }
	deployment := func(name, account string, labels map[string]string) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: meta(name), Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{ServiceAccountName: account},
		}}}
	}
	service := func(name string, selector map[string]string) *corev1.Service {
		return &corev1.Service{ObjectMeta: meta(name), Spec: corev1.ServiceSpec{Selector: selector}}
	}
	objects := fake.NewSimpleDynamicClient(scheme,
		service("one", map[string]string{"app": "one"}), service("two", map[string]string{"app": "two"}),
		service("none", nil), service("nobody", map[string]string{"app": "x"}),
		deployment("a", "coxswain", map[string]string{"app": "one", "more": "x"}), deployment("b", "coxswain", map[string]string{"app": "two"}),
		deployment("c", "", map[string]string{"app": "two"}))
	tags := Tags{Objects: objects, Namespace: "mesh"}
	for name, want := range map[string]string{"one": "mesh/coxswain", "two": "", "none": "", "nobody": "", "gone": ""} {
		if got, err := tags.account(t.Context(), &admission.ServiceReference{Namespace: "mesh", Name: name}); got != want || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := tags.account(t.Context(), nil); got != "" || err != nil {
		t.Errorf("without a Service: %q, %v", got, err)
	}
}
