// Package selector reads the label selectors of the mesh's settings.
package selector

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	meshv1 "istio.io/api/mesh/v1alpha1"
)

// Of returns what a selector takes, as Kubernetes has it: an empty one everything, nil nothing. It
// fails for operators and values that Kubernetes refuses.
func Of(s *meshv1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Nothing(), nil
	}
	of := &metav1.LabelSelector{MatchLabels: s.GetMatchLabels()}
	for _, e := range s.GetMatchExpressions() {
		of.MatchExpressions = append(of.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: e.Key, Operator: metav1.LabelSelectorOperator(e.Operator), Values: e.Values,
		})
	}
	return metav1.LabelSelectorAsSelector(of)
}
