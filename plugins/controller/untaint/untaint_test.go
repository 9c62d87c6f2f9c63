package untaint

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
)

func TestConfig(t *testing.T) {
	c, err := strict.Parse([]byte(`{"namespace": "mesh"}`), defaults())
	if err != nil || c.Taint != "cni.istio.io/not-ready" || c.cni() != "mesh" {
		t.Errorf("%+v, %v", c, err)
	}
	for config, field := range map[string]string{
		`{"taint": ""}`: "taint", `{"namespace": ""}`: "namespace", `{"lease": "1ms"}`: "lease", `{"qps": 0}`: "qps", `{"more": 1}`: "more",
	} {
		_, err := strict.Parse([]byte(config), defaults())
		var at *sdk.FieldError
		if !errors.As(err, &at) || at.Field != field {
			t.Errorf("%s: %v", config, err)
		}
	}
}

// TestReadme: the README's example is one.
func TestReadme(t *testing.T) {
	blocks, _ := readme.Example(t, 1)
	if !strings.Contains(blocks[0].Text, "builtin: controller/untaint") {
		t.Error(blocks)
	}
}

// TestLean: what is kept of nodes and pods is all that is looked at.
func TestLean(t *testing.T) {
	n, err := leanNode(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"a": "b"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "x"}, {Key: "y"}}},
	})
	if node := n.(*corev1.Node); err != nil || node.Name != "a" || len(node.Annotations) > 0 || !tainted(node, "y") || tainted(node, "z") {
		t.Errorf("%v, %v", n, err)
	}
	for status, want := range map[corev1.ConditionStatus]bool{corev1.ConditionTrue: true, corev1.ConditionFalse: false} {
		p, err := leanPod(&corev1.Pod{Spec: corev1.PodSpec{NodeName: "a"}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: status},
		}}})
		if err != nil || ready(p.(*corev1.Pod)) != want {
			t.Errorf("%v, %v", p, err)
		}
	}
}
