package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/lead"
)

// istiodLocks are names of locks that istiod keeps as an annotation of a ConfigMap, and not as a
// Lease. Plugins see Leases: of these names they are kept where istiod looks, so that a control
// plane of either kind leads, and not one of each. istiod names another one for the
// ClusterTrustBundle, and takes that of namespaces for it.
//
// Source: istio.io/istio, pilot/pkg/leaderelection (NewLeaderElection,
// NewLeaderElectionMulticluster) and who calls them.
var istiodLocks = []string{
	"istio-analyze-leader", "istio-ip-autoallocate", "istio-leader", "istio-namespace-controller-election",
	"istio-node-untaint", "istio-serviceexport-controller-election",
}

// manager is whom the API server names as the owner of the fields that are written.
const manager = "coxswain"

// lockAnnotation has a lockRecord.
// Source: client-go, resourcelock.LeaderElectionRecordAnnotationKey.
const lockAnnotation = "control-plane.alpha.kubernetes.io/leader"

// lockRecord says who holds a lock. HolderKey is a LockKey. Times are read with or without
// fractions of a second, and written with them.
type lockRecord[Time any] struct {
	HolderIdentity       string `json:"holderIdentity"`
	HolderKey            string `json:"holderKey"`
	LeaseDurationSeconds int32  `json:"leaseDurationSeconds"`
	AcquireTime          *Time  `json:"acquireTime"`
	RenewTime            *Time  `json:"renewTime"`
	LeaderTransitions    int32  `json:"leaderTransitions"`
}

// IsLock reports whether the Lease of a name is kept as istiod keeps it, by Locks.
func IsLock(table, name string) bool {
	return table == lead.Table && slices.Contains(istiodLocks, name)
}

// LockKey is what a holder of istiod's locks says of itself: its revision, empty as default, and
// whether the lock is in another cluster than its own. An istiod whose revision has the default tag
// takes the lock from one that has not, and in its own cluster from one of its revision elsewhere.
//
// Source: istio.io/istio, pilot/pkg/leaderelection (LocationPrioritizedComparison).
func LockKey(revision string, elsewhere bool) string {
	key := cmp.Or(revision, "default")
	if elsewhere {
		key = "^" + key
	}
	return key
}

// Locks are sdk.Objects for an election by one of istiod's locks that are ConfigMaps: it gets,
// creates and updates a Lease, which is kept in the ConfigMap of its name. All else is refused.
type Locks struct {
	// Objects are those of the cluster that has the ConfigMaps.
	Objects dynamic.Interface
	// Key is written beside who holds a lock: a LockKey.
	Key string
}

// errLock is that something is asked of such a lock that no election does.
var errLock = &sdk.StoreError{Code: sdk.StoreUnsupported, Reason: "this lock is a ConfigMap, as istiod's: it is got, created and updated alone"}

func (l Locks) in(namespace string) dynamic.ResourceInterface {
	return l.Objects.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace)
}

// Get implements sdk.Objects. A ConfigMap without the annotation is nobody's.
func (l Locks) Get(ctx context.Context, _, namespace, name string) ([]byte, error) {
	return leaseOf(l.in(namespace).Get(ctx, name, metav1.GetOptions{}))
}

// Create implements sdk.Objects: it makes the ConfigMap.
func (l Locks) Create(ctx context.Context, _ string, object []byte) ([]byte, error) {
	lease, annotations, err := l.read(object)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": lease.Namespace, "name": lease.Name, "annotations": annotations},
	}}
	return leaseOf(l.in(lease.Namespace).Create(ctx, u, metav1.CreateOptions{FieldManager: manager}))
}

// Update implements sdk.Objects: it changes the annotation of the version that was read, and
// nothing else.
func (l Locks) Update(ctx context.Context, _ string, object []byte) ([]byte, error) {
	lease, annotations, err := l.read(object)
	if err != nil {
		return nil, err
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": lease.ResourceVersion, "annotations": annotations},
	})
	if err != nil {
		return nil, err
	}
	return leaseOf(l.in(lease.Namespace).Patch(ctx, lease.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager}))
}

// List implements sdk.Objects.
func (l Locks) List(context.Context, string, string, sdk.Page) ([][]byte, string, error) {
	return nil, "", errLock
}

// UpdateStatus implements sdk.Objects.
func (l Locks) UpdateStatus(context.Context, string, []byte) ([]byte, error) { return nil, errLock }

// Patch implements sdk.Objects.
func (l Locks) Patch(context.Context, string, string, string, []byte, string) ([]byte, error) {
	return nil, errLock
}

// Delete implements sdk.Objects.
func (l Locks) Delete(context.Context, string, string, string, string) error { return errLock }

// read returns the Lease that an election writes, and the annotations of its ConfigMap.
func (l Locks) read(object []byte) (*coordination.Lease, map[string]any, error) {
	of := &coordination.Lease{}
	if err := json.Unmarshal(object, of); err != nil {
		return nil, nil, &sdk.StoreError{Code: sdk.StoreInvalid, Field: "spec", Reason: err.Error()}
	}
	r := lockRecord[metav1.MicroTime]{
		HolderIdentity: ptr.Deref(of.Spec.HolderIdentity, ""), LeaseDurationSeconds: ptr.Deref(of.Spec.LeaseDurationSeconds, 0),
		AcquireTime: of.Spec.AcquireTime, RenewTime: of.Spec.RenewTime, LeaderTransitions: ptr.Deref(of.Spec.LeaseTransitions, 0),
	}
	if r.HolderIdentity != "" {
		r.HolderKey = l.Key
	}
	text, err := json.Marshal(r)
	return of, map[string]any{lockAnnotation: string(text)}, err
}

// leaseOf is the Lease that stands for a ConfigMap.
func leaseOf(m *unstructured.Unstructured, err error) ([]byte, error) {
	if err != nil {
		return nil, Failure(err)
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
