package gateway

import (
	"context"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

// deployedCondition is the type of a condition of ours in the status of Gateways: it is there, with
// status False, while something is wrong with what is deployed. Other conditions are others'.
const deployedCondition = "coxswain-mesh.github.io/Deployed"

// tellOwner has the status of a Gateway say what is wrong with what is deployed for it, or nothing.
func (w *work) tellOwner(ctx context.Context, key string, m *memory) error {
	object := w.object(key)
	if object == nil {
		return nil
	}
	if !m.known { // an earlier leader may have told something
		m.known = !slices.ContainsFunc(object.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
			return e.FieldsV1 != nil && strings.Contains(e.FieldsV1.GetRawString(), deployedCondition)
		})
	}
	if m.known && m.told == m.problem {
		return nil
	}
	if err := w.tellStatus(ctx, object, m.problem); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	m.told, m.known = m.problem, true
	return nil
}

// tellStatus applies the condition; without a problem there is none.
func (c *cluster) tellStatus(ctx context.Context, object *metav1.PartialObjectMetadata, problem string) error {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	status := map[string]any{}
	if problem != "" {
		status["conditions"] = []any{map[string]any{
			"type": deployedCondition, "status": "False", "reason": "NotAsWished", "message": problem, "observedGeneration": object.Generation,
			"lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		}}
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": schema.GroupVersion(gateway.GroupVersion).String(), "kind": "Gateway", "status": status,
		"metadata": map[string]any{"name": object.Name, "namespace": object.Namespace, "uid": string(object.UID)},
	}}
	of := c.client.Objects.Resource(gatewaysResource).Namespace(object.Namespace)
	_, err := of.ApplyStatus(ctx, object.Name, u, metav1.ApplyOptions{FieldManager: agent, Force: true})
	return err
}
