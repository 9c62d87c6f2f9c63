package status

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

// Bad are the conditions that say that something is wrong with an object, but for Programmed, which
// follows from the others.
func Bad(list []metav1.Condition) (out []Problem) {
	for _, c := range list {
		skipped := c.Type == string(gateway.GatewayConditionProgrammed) || c.Type == string(gateway.ListenerConditionConflicted)
		p := Problem{c.Reason, c.Message}
		if c.Status == metav1.ConditionFalse && !skipped && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}
