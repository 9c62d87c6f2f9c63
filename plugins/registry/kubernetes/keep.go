package kubernetes

import (
	"maps"
	"unique"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// keeper makes of the objects of a kind what is kept of them. What many have in common is kept
// once: names and labels come again and again.
type keeper struct {
	labels lately[string]
	ports  lately[uint32]
	nodes  map[string]*string
}

// lean leaves out of an object what nothing reads, before it is kept.
func (k *keeper) lean(object any) (any, error) {
	if m, ok := object.(metav1.Object); ok {
		m.SetManagedFields(nil)
	}
	switch o := object.(type) {
	case *corev1.Pod:
		return k.pod(o), nil
	case *discoveryv1.EndpointSlice:
		k.slice(o)
	case *corev1.Service:
		delete(o.Annotations, lastApplied)
	case *corev1.Node:
		var outside []corev1.NodeAddress
		for _, a := range o.Status.Addresses {
			if a.Type == corev1.NodeExternalIP && a.Address != "" {
				outside = append(outside, a)
			}
		}
		o.Spec, o.Status, o.Annotations = corev1.NodeSpec{}, corev1.NodeStatus{Addresses: outside}, nil
	}
	return object, nil
}

// lastApplied says again what the object says.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

func (k *keeper) pod(p *corev1.Pod) *pod {
	return &pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: p.Name, Namespace: once(p.Namespace), ResourceVersion: p.ResourceVersion,
			Labels: k.labels.one(p.Labels, once), DeletionTimestamp: p.DeletionTimestamp,
		},
		node: once(p.Spec.NodeName), account: once(p.Spec.ServiceAccountName), workload: once(ownerOf(p)),
		hostname: p.Spec.Hostname, subdomain: once(p.Spec.Subdomain), addresses: addresses(p),
		ports: k.ports.one(portsOf(p), func(n uint32) uint32 { return n }),
		ready: ready(p), failed: p.Status.Phase == corev1.PodFailed, ended: p.Status.Phase == corev1.PodSucceeded,
	}
}

// slice leaves in a slice what makes endpoints.
func (k *keeper) slice(s *discoveryv1.EndpointSlice) {
	s.ObjectMeta = metav1.ObjectMeta{Name: s.Name, Namespace: once(s.Namespace), ResourceVersion: s.ResourceVersion, Labels: s.Labels}
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		*e = discoveryv1.Endpoint{
			Addresses: e.Addresses, Conditions: discoveryv1.EndpointConditions{
				Ready: either(e.Conditions.Ready), Serving: either(e.Conditions.Serving), Terminating: either(e.Conditions.Terminating),
			},
			TargetRef: e.TargetRef, NodeName: k.node(e.NodeName),
		}
		if r := e.TargetRef; r != nil {
			*r = corev1.ObjectReference{Kind: once(r.Kind), Namespace: once(r.Namespace), Name: r.Name}
		}
	}
}

// node is a pointer to the same name that others have.
func (k *keeper) node(name *string) *string {
	if name == nil {
		return nil
	}
	if k.nodes[*name] == nil {
		if k.nodes == nil || len(k.nodes) == manyNodes {
			k.nodes = map[string]*string{} // those that come again are known again soon
		}
		k.nodes[*name] = name
	}
	return k.nodes[*name]
}

// manyNodes bounds the names that are known.
const manyNodes = 10000

var yes, no = true, false

// either is a pointer to the same truth that others have.
func either(b *bool) *bool {
	switch {
	case b == nil:
		return nil
	case *b:
		return &yes
	}
	return &no
}

// once is the same text, kept once however many have it.
func once(s string) string { return unique.Make(s).Value() }

// lately are the maps that came last: objects that belong together have equal ones.
type lately[V comparable] struct {
	maps [lateMaps]map[string]V
	next int
}

const lateMaps = 16

// one returns a map equal to m that others may have, too; kept makes the values of a new one.
func (l *lately[V]) one(m map[string]V, kept func(V) V) map[string]V {
	for _, known := range l.maps {
		if known != nil && maps.Equal(known, m) {
			return known
		}
	}
	if m == nil {
		return nil
	}
	out := make(map[string]V, len(m))
	for k, v := range m {
		out[once(k)] = kept(v)
	}
	l.maps[l.next] = out
	l.next = (l.next + 1) % lateMaps
	return out
}
