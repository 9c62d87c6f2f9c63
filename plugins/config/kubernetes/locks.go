package kubernetes

import (
	"context"
	"encoding/json"
	"slices"

	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/lead"
)

// istiodLocks are names of locks that istiod keeps as an annotation of a ConfigMap, and not as a
// Lease. Plugins see Leases: of these names they are kept where istiod looks, so that a control
// plane of either kind leads, and not one of each.
//
// Source: istio.io/istio, pilot/pkg/leaderelection (NewLeaderElection,
// NewLeaderElectionMulticluster).
var istiodLocks = []string{
	"istio-analyze-leader", "istio-ip-autoallocate", "istio-leader", "istio-namespace-controller-election",
	"istio-node-untaint", "istio-serviceexport-controller-election",
}

// lockAnnotation has a lockRecord.
// Source: client-go, resourcelock.LeaderElectionRecordAnnotationKey.
const lockAnnotation = "control-plane.alpha.kubernetes.io/leader"

// lockRecord says who holds a lock. HolderKey is a revision: an istiod whose revision has the
// default tag takes the lock from one that has not. Times are read with or without fractions of a
// second, and written with them.
type lockRecord[Time any] struct {
	HolderIdentity       string `json:"holderIdentity"`
	HolderKey            string `json:"holderKey"`
	LeaseDurationSeconds int32  `json:"leaseDurationSeconds"`
	AcquireTime          *Time  `json:"acquireTime"`
	RenewTime            *Time  `json:"renewTime"`
	LeaderTransitions    int32  `json:"leaderTransitions"`
}

// isLock reports whether a Lease is kept as istiod keeps it.
func isLock(table, name string) bool {
	return table == lead.Table && slices.Contains(istiodLocks, name)
}

// errLock is that something is asked of such a lock that no election does.
var errLock = &sdk.StoreError{Code: sdk.StoreUnsupported, Reason: "this lock is a ConfigMap, as istiod's: it is got, created and updated alone"}

// locks are those of a namespace.
type locks struct {
	maps      dynamic.ResourceInterface
	namespace string
	key       string
}

func (s *store) locks(namespace string) locks {
	key := s.revision
	if key == "" {
		key = "default"
	}
	return locks{s.server.objects.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace), namespace, key}
}

func (l locks) get(ctx context.Context, name string) ([]byte, error) {
	return l.lease(l.maps.Get(ctx, name, metav1.GetOptions{}))
}

// create makes the ConfigMap.
func (l locks) create(ctx context.Context, lease *unstructured.Unstructured) ([]byte, error) {
	annotations, err := l.annotations(lease)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": l.namespace, "name": lease.GetName(), "annotations": annotations},
	}}
	return l.lease(l.maps.Create(ctx, u, metav1.CreateOptions{FieldManager: manager}))
}

// update changes the annotation of the version that was read, and nothing else.
func (l locks) update(ctx context.Context, lease *unstructured.Unstructured) ([]byte, error) {
	annotations, err := l.annotations(lease)
	if err != nil {
		return nil, err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": lease.GetResourceVersion(), "annotations": annotations}})
	if err != nil {
		return nil, err
	}
	return l.lease(l.maps.Patch(ctx, lease.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager}))
}

// annotations are those of the ConfigMap of a lock.
func (l locks) annotations(lease *unstructured.Unstructured) (map[string]any, error) {
	of := &coordination.Lease{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(lease.Object, of); err != nil {
		return nil, &sdk.StoreError{Code: sdk.StoreInvalid, Field: "spec", Reason: err.Error()}
	}
	r := lockRecord[metav1.MicroTime]{
		HolderIdentity: ptr.Deref(of.Spec.HolderIdentity, ""), LeaseDurationSeconds: ptr.Deref(of.Spec.LeaseDurationSeconds, 0),
		AcquireTime: of.Spec.AcquireTime, RenewTime: of.Spec.RenewTime, LeaderTransitions: ptr.Deref(of.Spec.LeaseTransitions, 0),
	}
	if r.HolderIdentity != "" {
		r.HolderKey = l.key
	}
	text, err := json.Marshal(r)
	return map[string]any{lockAnnotation: string(text)}, err
}

// lease is the Lease that stands for a lock. One without an annotation is nobody's.
func (l locks) lease(m *unstructured.Unstructured, err error) ([]byte, error) {
	if err != nil {
		return nil, failure(err)
	}
	var r lockRecord[metav1.Time]
	if text, ok := m.GetAnnotations()[lockAnnotation]; ok {
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return nil, &sdk.StoreError{Code: sdk.StoreInvalid, Reason: "the annotation " + lockAnnotation + " of the ConfigMap is no lock: " + err.Error()}
		}
	}
	micro := func(t *metav1.Time) *metav1.MicroTime {
		if t == nil {
			return nil
		}
		return &metav1.MicroTime{Time: t.Time}
	}
	return json.Marshal(&coordination.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: coordination.SchemeGroupVersion.String(), Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: m.GetNamespace(), Name: m.GetName(), UID: m.GetUID(), ResourceVersion: m.GetResourceVersion()},
		Spec: coordination.LeaseSpec{
			HolderIdentity: &r.HolderIdentity, LeaseDurationSeconds: &r.LeaseDurationSeconds,
			AcquireTime: micro(r.AcquireTime), RenewTime: micro(r.RenewTime), LeaseTransitions: &r.LeaderTransitions,
		},
	})
}
